"""failed_edit_share: how many of the agent's edits fail?"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import CODING, DEFAULTS, UNDISTURBED, Metric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class FailedEditShare(Metric):
    """Failed edits over all edits, of all prompts together.

    An edit fails where the text that it replaces is not in the file, for instance: the agent did
    not know the file as it is. State: three integers.

    >>> from otel_reliability.model.coding import CodingTotals
    >>> from otel_reliability.testing import row
    >>> metric = FailedEditShare()
    >>> metric.add(row(coding=CodingTotals(1, edits=4, failed_edits=1, editing_prompts=1)))
    >>> metric.value().value
    0.25
    """

    __slots__ = ("_edits", "_failed", "_prompts")

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

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._edits = self._failed = self._prompts = 0

    def count(self, row: Row, sign: int) -> None:
        if row.coding is not None:
            self._edits += sign * row.coding.edits
            self._failed += sign * row.coding.failed_edits
            self._prompts += sign * row.coding.editing_prompts

    def value(self) -> Reading:
        return Reading(self._failed / self._edits, self._prompts) if self._edits else NO_DATA
