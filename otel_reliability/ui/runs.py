"""The last runs of an agent, each with its path, how unusual that is, and where it leaves the common one; and their tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.run import Outcome, Run, ToolCall
from otel_reliability.report.text import clean, number, percent, seconds, trace_of
from otel_reliability.report.view import AgentView
from otel_reliability.ui.flow import COMMON, Steps, common_path

MAX_STEPS: Final = 14
"""Steps of a path that are shown."""
MAX_TOOLS: Final = 12
MAX_NAME: Final = 40
DEGREE_FROM: Final = (0.001, 0.15, 0.35, 0.6)
"""Distances from which a path is a little, somewhat, rather, very unusual."""
DEGREES: Final = ("common", "a little unusual", "somewhat unusual", "rather unusual", "very unusual")

CommonPaths: TypeAlias = Mapping[str | None, Steps | None]
"""The common path of each task, and under None of all runs; None where no path is common."""


class Step(NamedTuple):
    """One step; `differs`: here the run leaves the common path. `title` is the name in full."""

    name: str
    title: str
    differs: bool


class RunLine(NamedTuple):
    """One run. `degree` is how unusual its path is, from 0 to 4; None: there is no other to compare it with."""

    trace: str
    end_ns: int
    task: str
    outcome: str
    duration: str
    distance: str
    degree: int | None
    words: str
    steps: tuple[Step, ...]
    more: int
    no_path: str
    retries: int
    pressure: str


def run_lines(agent: AgentView) -> list[RunLine]:
    """Return the last runs, the newest first."""
    common = common_paths(agent)
    return [_run_line(run, distance, common) for run, distance in reversed(agent.recent)]


def common_paths(agent: AgentView) -> CommonPaths:
    """Return the common path of each task, and of all runs."""
    taken: dict[str | None, Counter[Steps]] = {}
    for (task, steps), runs in agent.paths.items():
        for each in {task, None}:
            taken.setdefault(each, Counter())[steps] += runs
    frequent = {task: common_path(paths) for task, paths in taken.items()}
    return {
        task: path if taken[task][path] >= COMMON * taken[task].total() else None for task, path in frequent.items()
    }


def _run_line(run: Run, distance: float | None, common: CommonPaths) -> RunLine:
    """Compare a run with the common path of its task (of all runs, where it has no task), which is never unusual itself."""
    path = run.path or ()
    expected = common.get(run.task_id, common.get(None))
    differs_at = None if expected is None else _first_difference(path, expected)
    degree = None if distance is None else 0 if run.path == expected else sum(distance >= cut for cut in DEGREE_FROM)
    return RunLine(
        trace=trace_of(run.run_id),
        end_ns=run.end_ns,
        task="" if run.task_id is None else clean(run.task_id, MAX_NAME),
        outcome=run.outcome.value if run.outcome is not Outcome.UNKNOWN else "",
        duration=seconds(run.duration_s),
        distance=number(distance),
        degree=degree,
        words="no other run to compare with" if degree is None else DEGREES[degree],
        steps=tuple(
            Step(clean(name, MAX_NAME), clean(name, 200), at == differs_at) for at, name in enumerate(path[:MAX_STEPS])
        ),
        more=max(0, len(path) - MAX_STEPS),
        no_path="tools not observable" if run.path is None else "no tool called" if not path else "",
        retries=run.retries or 0,
        pressure="" if run.token_pressure is None else percent(run.token_pressure),
    )


def _first_difference(path: Steps, common: Steps) -> int | None:
    """Return the first step that the common path does not have there; None where it is the common path, or ends sooner.

    >>> _first_difference(("a", "b"), ("a", "c")), _first_difference(("a",), ("a", "c"))
    (1, None)
    """
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, common, strict=False)))
    return same if same < len(path) else None


class CallLine(NamedTuple):
    """One tool. `chain` is the longest chain of retries; `repeats` are calls that had succeeded; `share` is in percent."""

    tool: str
    calls: int
    failed: int
    retries: int
    chain: int
    repeats: int
    share: float


def call_lines(runs: Iterable[Run]) -> list[CallLine]:
    """Return the tools of these runs, the most retried first. `share` compares the retries with those of the first.

    >>> from otel_reliability.testing import call, run
    >>> calls = (call("pay", ok=False), call("pay", retry=True, chain=1), call("look"))
    >>> [(line.tool, line.calls, line.failed, line.retries) for line in call_lines([run(["pay"], tool_calls=calls)])]
    [('pay', 2, 1, 1), ('look', 1, 0, 0)]
    """
    tools: dict[str, list[ToolCall]] = {}
    for run in runs:
        for call in run.tool_calls or ():
            tools.setdefault(call.name, []).append(call)
    lines = [_call_line(tool, calls) for tool, calls in tools.items()]
    lines.sort(key=lambda line: (-line.retries, -line.repeats, -line.failed, -line.calls, line.tool))
    most = max((line.retries for line in lines), default=0) or 1
    return [line._replace(share=round(100 * line.retries / most, 1)) for line in lines[:MAX_TOOLS]]


def _call_line(tool: str, calls: list[ToolCall]) -> CallLine:
    return CallLine(
        tool=clean(tool),
        calls=len(calls),
        failed=sum(not call.ok for call in calls),
        retries=sum(call.retry for call in calls),
        chain=max(call.chain for call in calls),
        repeats=sum(call.repeat for call in calls),
        share=0.0,
    )
