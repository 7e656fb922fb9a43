from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from rich.console import Console

from otel_reliability.cli.app import app
from otel_reliability.config import Settings
from otel_reliability.model.span import Evaluation, RawLog, RawSpan, Resource
from otel_reliability.recording import Recording
from otel_reliability.report import json as report_json
from otel_reliability.report.inspection import Inspection, InspectionView, render
from otel_reliability.sources.batch import Batch
from otel_reliability.testing import span, write_otlp
from tests.cli.command_line import call
from tests.report.build import runs

_SECRET = "canary-4711"


def _span(
    at: int,
    name: str,
    attributes: dict[str, object],
    *,
    parent: int | None = None,
    scope: str = "app",
) -> RawSpan:
    return span(
        at,
        parent,
        trace=1 + at // 10,
        name=name,
        start=at,
        end=at + 5,
        attributes=attributes,
        scope=scope,
    )


def _run(at: int, session: str | None = None) -> list[RawSpan]:
    agent: dict[str, object] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
    if session is not None:
        agent["gen_ai.conversation.id"] = session
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.arguments": _SECRET,
    }
    return [
        _span(at, "invoke_agent bot", agent),
        _span(at + 1, "execute_tool book", dict(tool), parent=at),
    ]


def _inspected(spans: list[RawSpan], settings: Settings | None = None) -> InspectionView:
    settings = settings or Settings()
    inspection = Inspection(settings)
    recording = Recording(settings, final=inspection.take, batches=inspection.see)
    inspection.see(Batch(spans=spans))
    recording.engine.receive(spans)
    recording.close()
    return inspection.found()


def _shown(inspection: InspectionView) -> str:
    page = io.StringIO()
    render(inspection, [], Console(file=page, width=200))
    return page.getvalue()


def test_spans_are_counted_by_convention_and_kind() -> None:
    inspection = _inspected([*_run(10), _span(30, "GET /", {"http.route": "/"}, scope="http")])

    assert {(found.convention, found.kind): found.spans for found in inspection.recognised} == {
        ("OTel GenAI", "agent"): 1,
        ("OTel GenAI", "tool"): 1,
    }
    assert [(found.scope, found.spans, found.suspected) for found in inspection.unknown] == [
        ("http", 1, False)
    ]


def test_runs_that_cross_traces_are_told() -> None:
    hop = replace(
        _span(30, "receive", {"messaging.system": "queue"}),
        span_kind=5,
        links=(((1).to_bytes(16), b"a span.."),),
    )
    inspection = _inspected([*_run(10), hop])

    assert inspection.crossing == {"link": 1}
    assert "Runs that cross traces, by the links of 1 span" in _shown(inspection)
    assert not _inspected(_run(10)).crossing


def test_an_unknown_dialect_of_agents_is_suspected_and_told_what_it_offers() -> None:
    spans = [_span(10 * i, "step", {"acme.agent.step": _SECRET}, scope="acme") for i in range(1, 4)]
    inspection = _inspected(
        [*spans, *(_span(10 * i, "GET /", {}, scope="http") for i in range(5, 10))]
    )

    first = inspection.unknown[0]

    assert (first.scope, first.spans, first.suspected) == ("acme", 3, True)
    assert first.keys == {"acme.agent.step": 3}


def test_sessions_that_are_made_up_are_told() -> None:
    """Three runs in three conversations: the ids are the instrumentation's; two turns of one
    conversation are not.
    """
    invented = _inspected([one for i in range(1, 4) for one in _run(10 * i, f"c{i}")])
    shared = _inspected([one for i in range(1, 4) for one in _run(10 * i, "c")])

    assert [told.invented_sessions for told in (*invented.agents, *shared.agents)] == [True, False]


def test_no_value_is_ever_shown() -> None:
    inspection = _inspected([*_run(10), _span(30, "step", {"acme.prompt": _SECRET}, scope="acme")])

    for shown in (_shown(inspection), report_json.render(inspection)):
        assert "acme.prompt" in shown
        assert _SECRET not in shown


def test_the_command_reads_files_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    write_otlp(file, [*_run(10), *_run(20)])

    result = CliRunner().invoke(app, ["inspect", "--format", "json", str(file)])

    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [(agent["key"]["agent"], agent["runs"]) for agent in told["agents"]] == [("bot", 2)]
    assert told["tools"] == [
        {"name": "book", "calls": 2, "effect": True, "why": "no rule says that it only reads"},
    ]


def test_the_line_that_corrects_a_verdict_can_be_pasted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", runs("search 'order'"))
    lines = [
        line
        for line in call(capsys, "inspect", path).out.splitlines()
        if line.strip().startswith("--set")
    ]
    pasted = [shlex.split(line)[:2] for line in lines]
    corrected = [
        json.loads(call(capsys, "inspect", path, *words, "--format", "json").out)
        for words in pasted
    ]

    assert [words[1].partition("=")[0] for words in pasted] == ["tools.reads", "tools.effects"]
    for (_, setting), found in zip(pasted, corrected, strict=True):
        [name] = json.loads(setting.partition("=")[2])
        assert [tool["effect"] for tool in found["tools"] if tool["name"] == name] == [
            setting.startswith("tools.effects")
        ]


def test_results_that_look_like_errors_are_shown_until_a_pattern_catches_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [one for at in range(10, 60, 10) for one in _run(at)]
    spans = [
        replace(
            one,
            attributes={**one.attributes, "gen_ai.tool.call.result": f"Error: {_SECRET} {number}"},
        )
        if "gen_ai.tool.name" in one.attributes
        else one
        for number, one in enumerate(spans)
    ]
    path = write_otlp(tmp_path / "spans.jsonl", spans)
    shown = call(capsys, "inspect", path).out
    (line,) = [line for line in shown.splitlines() if "tools.soft_errors" in line]

    assert "book: 5 results of successful calls with 'error' at the start" in shown
    assert _SECRET not in shown
    after = json.loads(call(capsys, "inspect", path, *shlex.split(line), "--format", "json").out)
    assert after["uncaught_errors"] == []
    runs = [
        json.loads(one) for one in call(capsys, "runs", path, *shlex.split(line)).out.splitlines()
    ]
    assert [one["ok"] for run in runs for one in run["tool_calls"]] == [False] * 5


def test_log_events_are_shown_read_or_not() -> None:
    given = {"session.id": "s", "prompt": _SECRET}
    claude = RawLog(
        "user_prompt", 1, b"", b"", given, "com.anthropic.claude_code.events", Resource()
    )
    batch = Batch(
        logs=[
            claude,
            claude,
            replace(claude, name="plugin_loaded"),
            replace(claude, name="started", scope="app"),
        ],
        evaluations=[Evaluation("correct", 1.0, None, 1)],
    )
    inspecting = Inspection(Settings())
    inspecting.see(batch)
    inspection = inspecting.found()

    assert [(one.name, one.convention, one.kind, one.events) for one in inspection.events] == [
        ("user_prompt", "Claude Code", "agent", 2),
        ("gen_ai.evaluation.result", "evaluations", "evaluation", 1),
        ("started", None, None, 1),
        ("plugin_loaded", None, None, 1),
    ]
    assert "3 of 5 events read" in _shown(inspection)
    assert _SECRET not in _shown(inspection) + report_json.render(inspection)


@pytest.mark.parametrize(
    ("found", "meant"),
    [
        ("otel_reliability.task.id", "reliability.task.id"),
        ("agent.reliability.task.id", "reliability.task.id"),
        ("reliability.taskid", "reliability.task.id"),
        ("reliability.task_id", "reliability.task.id"),
        ("otel-reliability.run.success", "reliability.run.success"),
        ("reliability.success", "reliability.run.success"),
        ("reliability.contextlimit", "reliability.context_limit"),
    ],
)
def test_attributes_that_are_nearly_ours_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], found: str, meant: str
) -> None:
    root, *rest = runs("a", "a", notes={found: "refund-7"})
    file = write_otlp(tmp_path / "spans.jsonl", [root, *rest])
    view = json.loads(call(capsys, "inspect", file, "--format", "json").out)
    page = call(capsys, "inspect", file).out

    assert view["near_keys"] == [{"found": found, "meant": meant, "times": 2}]
    assert re.search(rf"{re.escape(found)} +{re.escape(meant)} +2", page)
    assert "refund-7" not in page


def test_attributes_of_ours_and_of_others_are_not_near(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = {"reliability.task.id": "t", "reliability.branch.kind": "x", "reliability.trial": "1"}
    others = {"task.id": "7", "agent.reliability.score": 1, "app.reliability": "high"}
    file = write_otlp(tmp_path / "spans.jsonl", runs("a", notes={**ours, **others}))

    assert json.loads(call(capsys, "inspect", file, "--format", "json").out)["near_keys"] == []
