"""tool_call_variation: does the agent call each tool equally often each time?"""

from __future__ import annotations

import math

from otel_reliability.metrics._support.group_metric import PathMetric
from otel_reliability.metrics._support.latest_pairs import path_code
from otel_reliability.metrics._support.run_group import RunGroup, Share
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class CallCounts(RunGroup):
    """Σ calls and Σ calls² of each tool, over one group of runs."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        super().__init__()
        self._sums: dict[str, tuple[int, int]] = {}

    def count(self, row: Row, sign: int) -> None:
        sums = self._sums
        code = path_code(row)
        for tool in set(code):
            calls = code.count(tool)
            total, squares = sums.pop(tool, (0, 0))
            total += sign * calls
            if total:
                sums[tool] = (total, squares + sign * calls * calls)

    def share(self) -> Share | None:
        if self.runs < 2:
            return None
        spreads = [
            math.sqrt(self.runs * squares - total * total) / total
            for total, squares in self._sums.values()
        ]
        halves = [spread / 2.0 if spread < 2.0 else 1.0 for spread in spreads]
        value = math.fsum(halves) / len(halves) if halves else 0.0
        return Share((value,), self.runs, self.runs)


class ToolCallVariation(PathMetric[CallCounts]):
    """The mean over tools of min(s / mean, 2) / 2 of the calls per run; s over n, a run that never
    called the tool counts 0.

    With Σ and Σ² of a tool's calls, s / mean = √(n·Σ² − (Σ)²) / Σ. A tool used once in 5 or more
    runs reaches 1. Unlike tool variance it sees how often tools are called. Runs without any tool
    agree: 0. State: integers, two a tool.

    >>> from otel_reliability.testing import rows_of
    >>> variation = ToolCallVariation()
    >>> for row in rows_of("search reply", "search search search reply"):
    ...     variation.add(row)
    >>> variation.value().value
    0.125
    """

    __slots__ = ()

    spec = MetricSpec(
        name="tool_call_variation",
        title="Tool call variation",
        family="stability",
        direction="lower",
        description=(
            "How much the number of calls of each tool varies from run to run, averaged over tools."
        ),
        formula="mean over tools of min(s / mean, 2) / 2",
        required_data="2 runs of a task with observable tools",
        source="agentcop 0.4.12",
        improve=(
            "Inspect the tools whose call counts vary most: give them limits, or let one "
            "call do the work of many."
        ),
        interval="comparison",
    )

    def new_group(self) -> CallCounts:
        return CallCounts()
