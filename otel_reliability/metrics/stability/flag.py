"""flag: what a reader must know next to the score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS, Derived, Series
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading

TOKEN_PRESSURE_HIGH: Final = "token_pressure_high"  # noqa: S105 - the name of a flag, no password
RANDOM_STEPS: Final = "random_steps"
CONTEXT_GROWTH: Final = "context_growth"

RANDOM_BELOW: Final = 0.1
"""Step predictability up to which an agent chooses its tools as if at random."""
FEW_TURNS: Final = 3.0
"""Turns until the context window is full, up to which its growth is flagged."""
TOLERANCE: Final = 1e-9


class Flag(Derived):
    """Warnings next to the score, which change nothing: an agent at 0.81 may well be STABLE,
    "UNSTABLE by token pressure" or not.

    As a reading: how many flags are set, their names in `parts`. As emitted: one series for each
    flag whose metric is emitted, 1 set, 0 not. No value where no flag can be evaluated. The source
    has one, "Budget pressure above 80% on average is flagged as UNSTABLE"; the others are this
    project's.

    >>> readings = {
    ...     "token_budget_pressure": Reading(0.81, 20),
    ...     "step_predictability": Reading(0.1, 20),
    ... }
    >>> Flag().derive({**readings, "context_turns_left": NO_DATA}).parts
    ('token_pressure_high', 'random_steps')
    >>> Flag().derive(
    ...     {**dict.fromkeys(Flag.needs, NO_DATA), "token_budget_pressure": Reading(0.8, 20)}
    ... ).value
    0.0
    """

    spec = MetricSpec(
        name="flag",
        title="Flags",
        family="stability",
        unit="{flag}",
        high=None,
        direction="lower",
        description="Warnings next to the score: token_pressure_high (the context window is on "
        "average above 80 % full), "
        "random_steps (tools are chosen as if at random), context_growth (a conversation "
        "is about to fill the context window).",
        formula=(
            "1 for each of token_budget_pressure > 0.8, step_predictability ≤ 0.1, "
            "context_turns_left ≤ 3"
        ),
        required_data="as for the metric that sets it",
        source="AgentCop, Reliability Layer",
        improve="As for the metric that sets it.",
    )
    needs = ("token_budget_pressure", "step_predictability", "context_turns_left")

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        high = settings.metrics.pressure_flag + TOLERANCE
        self._rules: tuple[tuple[str, Callable[[float], bool]], ...] = (
            (TOKEN_PRESSURE_HIGH, lambda pressure: pressure > high),
            (RANDOM_STEPS, lambda predictability: predictability <= RANDOM_BELOW + TOLERANCE),
            (CONTEXT_GROWTH, lambda turns: turns <= FEW_TURNS),
        )

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        found = self._evaluated(readings)
        names = tuple([flag for flag, (is_set, _) in found.items() if is_set])
        return (
            Reading(float(len(names)), max(runs for _, runs in found.values()), names)
            if found
            else NO_DATA
        )

    def series(self, readings: Mapping[str, Reading]) -> Series:
        found = self._evaluated(readings)
        return tuple(
            [
                ((("flag", flag),), Reading(float(is_set), runs))
                for flag, (is_set, runs) in found.items()
            ]
        )

    def _evaluated(self, readings: Mapping[str, Reading]) -> dict[str, tuple[bool, int]]:
        """Return whether each flag with data is set, and the runs behind it."""
        found = (
            (flag, is_set, readings[name])
            for (flag, is_set), name in zip(self._rules, self.needs, strict=True)
        )
        return {
            flag: (is_set(value), runs)
            for flag, is_set, (value, runs, *_) in found
            if value is not None
        }
