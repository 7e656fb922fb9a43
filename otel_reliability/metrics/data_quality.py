"""data_quality.findings: how many runs rest on flawed telemetry?"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, UNDISTURBED, Metric, Series
from otel_reliability.model.flaws import FLAWS
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row

KIND = "kind"
"""The attribute of its series: the kind of a flaw."""


class DataQualityFindings(Metric):
    """The number of undisturbed runs with a flaw of their telemetry; as series, by kind of flaw.

    A run may have several. Kinds that no run has are not emitted. State: an integer for each kind.

    >>> from otel_reliability.testing import row
    >>> metric = DataQualityFindings()
    >>> for flaws in ((), ("root_missing",), ("root_missing", "clock_skew")):
    ...     metric.add(row(flaws=flaws))
    >>> metric.value().value, [(kinds, reading.value) for kinds, reading in metric.series()]
    (2.0, [((('kind', 'root_missing'),), 2.0), ((('kind', 'clock_skew'),), 1.0)])
    """

    __slots__ = ("_affected", "_counts", "_runs")

    requires = UNDISTURBED

    spec = MetricSpec(
        name="data_quality.findings",
        title="Runs with flawed telemetry",
        family="window",
        unit="{run}",
        high=None,
        direction="neutral",
        description=(
            "How many runs rest on telemetry that lost something or reports it wrongly; by kind "
            "of finding."
        ),
        formula="runs with a finding",
        required_data="none",
        source="this project",
        improve=(
            "Read the data quality table of the report: each finding names what to change at the "
            "source."
        ),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = self._affected = 0
        self._counts: dict[str, int] = {}

    def count(self, row: Row, sign: int) -> None:
        self._runs += sign
        if row.flaws:
            self._affected += sign
            for kind in row.flaws:
                self._counts[kind] = self._counts.get(kind, 0) + sign

    def value(self) -> Reading:
        return Reading(float(self._affected), self._runs)

    def series(self) -> Series:
        found = ((flaw.kind, self._counts.get(flaw.kind, 0)) for flaw in FLAWS)
        return tuple(
            (((KIND, kind),), Reading(float(number), self._runs))
            for kind, number in found
            if number
        )
