"""tool_variance: does the agent choose the same tools each time?"""

from __future__ import annotations

from otel_reliability.metrics._support.group_metric import PathMetric
from otel_reliability.metrics._support.run_group import RunGroup, Share
from otel_reliability.metrics._support.sums import Counts
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class ToolSets(RunGroup):
    """Counts of the sets of tools of one group of runs."""

    __slots__ = ("_sets",)

    def __init__(self) -> None:
        super().__init__()
        self._sets = Counts[str]()

    def count(self, row: Row, sign: int) -> None:
        if row.path is not None:
            self._sets.count("".join(sorted(set(row.path.code))), sign)

    def share(self) -> Share | None:
        return Share((self._sets.evenness(),), self.runs, self.runs) if self.runs >= 2 else None


class ToolVariance(PathMetric[ToolSets]):
    """Shannon entropy of the *sets* of tools that n runs used, over its maximum log2 n; in whatever
    order and however often.

    The source gives no formula; of the simple definitions this is the one that prints its example's
    0.31 (20 runs of which all search, 18 summarise, 3 send an email and 1 writes to the database).
    What its code computes today is `tool_call_variation`. State: integers, for each distinct set.

    >>> from otel_reliability.testing import rows_of
    >>> usual, without = "web_search summarize", "web_search"
    >>> email, database = (
    ...     "web_search summarize send_email",
    ...     "web_search summarize write_to_database",
    ... )
    >>> variance = ToolVariance()
    >>> for row in rows_of(*[usual] * 14, *[email] * 3, database, *[without] * 2):
    ...     variance.add(row)
    >>> print(f"{variance.value().value:.2f}")
    0.31
    """

    __slots__ = ()

    spec = MetricSpec(
        name="tool_variance",
        title="Tool variance",
        family="stability",
        direction="lower",
        description=(
            "How much the set of tools used varies from run to run: 0 always the same set, 1 "
            "never twice the same."
        ),
        formula="H(sets of tools) / log2 n",
        required_data="2 runs of a task with observable tools",
        source="AgentCop, Reliability Layer",
        improve=(
            "Inspect the rare tools: take away those the task does not need, and say in the "
            "prompt when to use the others."
        ),
        interval="comparison",
    )

    def new_group(self) -> ToolSets:
        return ToolSets()
