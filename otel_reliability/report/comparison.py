"""Two recordings side by side: how each number changed, with the runs behind both, and whether by more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics.differences import LEVEL, differences
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.run import AgentKey
from otel_reliability.report.report import Report
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard

__all__ = ["CORRECTION", "LEVEL", "AgentChange", "Change", "Comparison", "change_of", "changes", "compare"]

SAME_BELOW: Final = 1e-9
"""A change smaller than this is the noise of adding floats."""

CORRECTION: Final = "Holm"
"""What corrects for the number of numbers that are compared: else one of them would differ by chance alone."""

Better: TypeAlias = Literal["better", "worse", "same", "changed", "gained", "lost"]
"""`changed`: neither direction is better. `gained`, `lost`: only one side has evidence."""


class Change(NamedTuple):
    """One number, before and after. `difference` is None where either side has no value; `clear` whether it is larger than
    chance, None where that cannot be said.
    """

    name: str
    before: Reading
    after: Reading
    difference: float | None
    verdict: Better
    clear: bool | None = None


class AgentChange(NamedTuple):
    """An agent of both recordings, and every number that either has."""

    old: Scorecard
    new: Scorecard
    changes: Sequence[Change]

    @property
    def weighed(self) -> int:
        """How many numbers were weighed against chance: those with an interval on both sides."""
        return sum(change.clear is not None for change in self.changes)


class Comparison(NamedTuple):
    """The agents of both recordings, and those of one only."""

    agents: Sequence[AgentChange]
    only_before: Sequence[Scorecard]
    only_after: Sequence[Scorecard]


def compare(before: Report, after: Report) -> Comparison:
    """What changed from one report to another. Agents are matched by their keys: service, environment and name."""
    old, new = _by_key(before), _by_key(after)
    return Comparison(
        agents=[
            AgentChange(old[key], card, changes(old[key], card, after.settings))
            for key, card in new.items()
            if key in old
        ],
        only_before=[card for key, card in old.items() if key not in new],
        only_after=[card for key, card in new.items() if key not in old],
    )


def changes(old: Scorecard, new: Scorecard, settings: Settings) -> list[Change]:
    """Every number that either has, in the order of reports. Tier and flags follow from others and are left out."""
    clear = _clear(old, new, settings)
    return [
        change_of(spec, old.readings[name], new.readings[name], clear.get(name))
        for name, spec in ALL_SPECS.items()
        if name not in {"tier", "flag"}
        and (old.readings[name].value is not None or new.readings[name].value is not None)
    ]


def change_of(spec: MetricSpec, before: Reading, after: Reading, clear: bool | None = None) -> Change:
    """How one number changed.

    >>> from otel_reliability.metrics import spec_of
    >>> change = change_of(spec_of("path_entropy"), Reading(0.5, 20), Reading(0.25, 30))
    >>> change.difference, change.verdict
    (-0.25, 'better')
    """
    if before.value is None or after.value is None:
        return Change(spec.name, before, after, None, "gained" if before.value is None else "lost")
    difference = after.value - before.value
    return Change(spec.name, before, after, difference, _judge(spec, difference), clear)


def _clear(old: Scorecard, new: Scorecard, settings: Settings) -> Mapping[str, bool | None]:
    """Which differences are larger than chance; nothing is said where intervals were too dear to compute."""
    if not old.intervals or not new.intervals:
        return {}
    return {one.name: one.clear for one in differences(old.rows, new.rows, settings) if one.p is not None}


def _judge(spec: MetricSpec, difference: float) -> Better:
    if abs(difference) < SAME_BELOW:
        return "same"
    if spec.direction == "neutral":
        return "changed"
    return "better" if (difference > 0) == (spec.direction == "higher") else "worse"


def _by_key(report: Report) -> dict[AgentKey, Scorecard]:
    return {card.key: card for card in report.cards}
