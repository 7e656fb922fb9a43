"""The tools of the last runs: how often each was called, failed, and was tried again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from otel_reliability.model.run import Run, ToolCall
from otel_reliability.report.text import clean

MOST_TOOLS: Final = 12


class CallLine(NamedTuple):
    """One tool. `chain` is the most retries of one call; `repeats` are calls that had succeeded already."""

    tool: str
    calls: int
    failed: int
    retries: int
    chain: int
    repeats: int
    share: float


def calls_of(runs: Iterable[Run]) -> list[CallLine]:
    """The tools, those retried most first. `share` is the retries of the one that was retried most, in hundredths.

    >>> from otel_reliability.testing import call, run
    >>> calls = (call("pay", ok=False), call("pay", retry=True, chain=1), call("look"))
    >>> [(line.tool, line.calls, line.failed, line.retries) for line in calls_of([run(["pay"], tool_calls=calls)])]
    [('pay', 2, 1, 1), ('look', 1, 0, 0)]
    """
    tools: dict[str, list[ToolCall]] = {}
    for run in runs:
        for call in run.tool_calls or ():
            tools.setdefault(call.name, []).append(call)
    lines = [_line(tool, calls) for tool, calls in tools.items()]
    lines.sort(key=lambda line: (-line.retries, -line.repeats, -line.failed, -line.calls, line.tool))
    most = max((line.retries for line in lines), default=0) or 1
    return [line._replace(share=round(100 * line.retries / most, 1)) for line in lines[:MOST_TOOLS]]


def _line(tool: str, calls: list[ToolCall]) -> CallLine:
    return CallLine(
        tool=clean(tool),
        calls=len(calls),
        failed=sum(not call.ok for call in calls),
        retries=sum(call.retry for call in calls),
        chain=max(call.chain for call in calls),
        repeats=sum(call.repeat for call in calls),
        share=0.0,
    )
