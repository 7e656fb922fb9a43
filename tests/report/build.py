"""Small recordings: spans by hand → files → reports."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.model.span import KIND_CLIENT, STATUS_ERROR, STATUS_UNSET, RawSpan
from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.report import terminal
from otel_reliability.report.build import report_of
from otel_reliability.report.view import AgentView, Baseline, ReportView
from otel_reliability.testing import span, write_otlp


def run_spans(
    number: int,
    path: str,
    *,
    agent: str = "support",
    failed: str = "",
    task: str | None = None,
    success: bool | None = None,
    session: str | None = None,
    notes: Mapping[str, Any] = {},
) -> list[RawSpan]:
    """One run: an agent's span and a tool span a step, one a second. `failed` names the tools whose
    calls fail; `notes` are further attributes of the agent's span.
    """
    start = 100.0 * number
    steps = path.split()
    facts = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": session,
        "reliability.task.id": task,
        "reliability.run.success": success,
        **notes,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    root = span(
        1,
        trace=number,
        name="invoke_agent",
        start=start,
        end=start + len(steps) + 1,
        attributes=known,
    )
    return [
        root,
        *(_tool(number, at, name, start, name in failed.split()) for at, name in enumerate(steps)),
    ]


def _tool(number: int, at: int, name: str, start: float, failed: bool) -> RawSpan:
    facts = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": "{}",
    }
    return span(
        at + 2,
        1,
        trace=number,
        name="execute_tool",
        start=start + at,
        end=start + at + 0.5,
        status=STATUS_ERROR if failed else STATUS_UNSET,
        attributes=facts,
    )


def chat(
    run: int, tokens: int | None = None, *, after: float = 0.0, seconds: float = 0.1, **facts: Any
) -> RawSpan:
    """A model call of a run, so long after it began; `tokens` are those of its input; `__` in other
    names stands for a dot.
    """
    given: dict[str, Any] = {} if tokens is None else {"gen_ai.usage.input_tokens": tokens}
    given |= {
        "gen_ai.operation.name": "chat",
        **{name.replace("__", "."): value for name, value in facts.items()},
    }
    start = 100.0 * run + after
    number = 90 + round(10 * after)
    return span(
        number, 1, trace=run, kind=KIND_CLIENT, start=start, end=start + seconds, attributes=given
    )


def runs(*paths: str, first: int = 1, **facts: Any) -> list[RawSpan]:
    """A run for each path, numbered from `first`."""
    return [
        each
        for number, path in enumerate(paths, first)
        for each in run_spans(number, path, **facts)
    ]


def attempts(
    task: str, *outcomes: bool, first: int = 1, path: str = "search", agent: str = "support"
) -> list[RawSpan]:
    tried = (
        run_spans(at, path, agent=agent, task=task, success=outcome)
        for at, outcome in enumerate(outcomes, first)
    )
    return [each for spans in tried for each in spans]


def recorded(
    tmp_path: Path, spans: Iterable[RawSpan], settings: Settings = REPORT_SETTINGS
) -> Recording:
    recording = Recording(settings)
    recording.read(write_otlp(tmp_path / "spans.jsonl", spans))
    return recording.close()


def report(
    tmp_path: Path, spans: Iterable[RawSpan], settings: Settings = REPORT_SETTINGS
) -> ReportView:
    return report_of(recorded(tmp_path, spans, settings), for_people=True)


def comparison(
    tmp_path: Path, before: Iterable[RawSpan], after: Iterable[RawSpan]
) -> tuple[ReportView, Baseline]:
    earlier = recorded(tmp_path, before)
    found = report_of(recorded(tmp_path, after), earlier=earlier)
    assert found.baseline is not None
    return found, found.baseline


def agent_of(
    tmp_path: Path, spans: Iterable[RawSpan], settings: Settings = REPORT_SETTINGS
) -> AgentView:
    [found] = report(tmp_path, spans, settings).agents
    return found


def printed(found: ReportView, width: int = 80, *, details: bool = True) -> str:
    """The page of a report on a terminal, without colour."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    terminal.render(found, console, details=details)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def with_min_runs(number: int) -> Settings:
    return replace(REPORT_SETTINGS, metrics=MetricSettings(min_runs=number))


def spoil(path: Path, *lines: str) -> Path:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def loaded(text: str) -> Any:
    """Parse JSON, and refuse what only Python calls JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)
