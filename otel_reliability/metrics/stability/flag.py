"""flag: what a reader must know beside the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Derived
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading

TOKEN_PRESSURE_HIGH: Final = "token_pressure_high"  # noqa: S105 - the name of a flag, no password
TOLERANCE: Final = 1e-9


class Flag(Derived):
    """`token_pressure_high` is set where the mean token budget pressure is above 0.8 (`metrics.pressure_flag`).

    A flag warns and changes nothing: an agent at 0.81 may well be STABLE, and is called "UNSTABLE by token pressure" beside
    that. As a reading: how many flags are set, their names in `parts`. As emitted: one series a flag, 1 set, 0 not. No
    value where no flag can be evaluated. State: none.

    >>> Flag().derive({"token_budget_pressure": Reading(0.81, 20)}).parts
    ('token_pressure_high',)
    >>> Flag().derive({"token_budget_pressure": Reading(0.8, 20)}).value
    0.0

    References: AgentCop, *Reliability Layer*: "Budget pressure above 80% on average is flagged as UNSTABLE."
    """

    __slots__ = ("_threshold",)

    spec = MetricSpec(
        name="flag",
        title="Flags",
        family="stability",
        unit="{flag}",
        direction="lower",
        description="Warnings beside the score: token_pressure_high where the context window is on average above 80 % full.",
        formula="1 if token_budget_pressure > 0.8, else 0",
        evidence="as for the metric that sets it",
        source="AgentCop, Reliability Layer",
        improve="As for the metric that sets it.",
    )
    needs = ("token_budget_pressure",)

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._threshold = settings.metrics.pressure_flag

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        pressure = readings["token_budget_pressure"]
        if pressure.value is None:
            return NO_EVIDENCE
        high = pressure.value > self._threshold + TOLERANCE
        return Reading(float(high), pressure.runs, (TOKEN_PRESSURE_HIGH,) if high else ())

    def series(self, reading: Reading) -> tuple[tuple[tuple[tuple[str, str], ...], Reading], ...]:
        if reading.value is None:
            return ()
        raised = float(TOKEN_PRESSURE_HIGH in reading.parts)
        return (((("flag", TOKEN_PRESSURE_HIGH),), Reading(raised, reading.runs)),)
