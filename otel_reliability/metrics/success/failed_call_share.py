"""failed_call_share: how many of an agent's tool calls fail?"""

from __future__ import annotations

from otel_reliability.metrics._support.ratio import Part, Ratio
from otel_reliability.metrics.base import CALLS, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class FailedCallShare(Ratio):
    """Failed tool calls over all tool calls, of all runs together.

    Agents that catch what their tools raise end without an error: neither the error rate nor a
    stable path shows that no tool of theirs works.

    >>> from otel_reliability.testing import row
    >>> share = FailedCallShare()
    >>> for failed in (1, 0, 2):
    ...     share.add(row("a a", failed_calls=failed))
    >>> share.value().value
    0.5
    """

    __slots__ = ()

    requires = UNDISTURBED | CALLS

    spec = MetricSpec(
        name="failed_call_share",
        title="Share of failed tool calls",
        family="success",
        direction="lower",
        description="The share of tool calls that failed, whatever became of their runs.",
        formula="failed tool calls / tool calls",
        required_data="1 tool call",
        source="this project",
        improve="Open a run whose calls fail: the failed step says what its tool answered.",
        interval="comparison",
    )

    def of_run(self, row: Row) -> Part | None:
        return Part(row.failed_calls or 0, row.tool_calls or 0)
