"""reads_before_edit: how much does the agent read before it changes anything?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics.base import CODING, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class ReadsBeforeEdit(PerRun):
    """The mean number of calls that read or search files before the first edit of a prompt, over
    the prompts with an edit.

    A call of a shell counts by its command (`model.coding`), those of subagents count too.

    >>> from otel_reliability.model.coding import CodingTotals
    >>> from otel_reliability.testing import row
    >>> metric = ReadsBeforeEdit()
    >>> for reads in (7, 6):
    ...     totals = CodingTotals(1, edits=1, editing_prompts=1, reads_before_edit=reads)
    ...     metric.add(row(coding=totals))
    >>> metric.value()
    Reading(value=6.5, runs=2, parts=(), note='')
    """

    __slots__ = ()

    requires = UNDISTURBED | CODING

    spec = MetricSpec(
        name="reads_before_edit",
        title="Reads before the first edit",
        family="coding",
        unit="{call}",
        high=None,
        direction="higher",
        description="How many calls of a prompt read or search files before its first edit.",
        formula="Σ reads before the first edit / prompts with an edit",
        required_data="1 prompt that changed a file",
        source="this project",
        improve="Instruct the agent to read what it changes, or to plan first.",
        interval="runs",
    )

    def of_run(self, row: Row) -> int | None:
        coding = row.coding
        return None if coding is None or not coding.editing_prompts else coding.reads_before_edit
