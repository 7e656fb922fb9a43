"""failed_edit_share: how many of the agent's edits fail?"""

from __future__ import annotations

from otel_reliability.metrics._support.ratio import Part, Ratio
from otel_reliability.metrics.base import CODING, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class FailedEditShare(Ratio):
    """Failed edits over all edits, of all prompts together.

    An edit fails where the text that it replaces is not in the file, for instance: the agent did
    not know the file as it is.

    >>> from otel_reliability.model.coding import CodingTotals
    >>> from otel_reliability.testing import row
    >>> metric = FailedEditShare()
    >>> metric.add(row(coding=CodingTotals(1, edits=4, failed_edits=1, editing_prompts=1)))
    >>> metric.value().value
    0.25
    """

    __slots__ = ()

    requires = UNDISTURBED | CODING

    spec = MetricSpec(
        name="failed_edit_share",
        title="Share of failed edits",
        family="coding",
        direction="lower",
        description="The share of calls that change files that failed.",
        formula="failed edits / edits",
        required_data="1 prompt with an edit",
        source="this project",
        improve="Compare with reads_before_edit: edits of files that were not read fail most.",
        interval="comparison",
    )

    def of_run(self, row: Row) -> Part | None:
        coding = row.coding
        return None if coding is None else Part(coding.failed_edits, coding.edits)
