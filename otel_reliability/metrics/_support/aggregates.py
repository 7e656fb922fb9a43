"""Numbers computed from other numbers; the reading names the parts that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from otel_reliability.metrics._support.outcomes import ENDS_COUNT, noted
from otel_reliability.metrics.base import Derived
from otel_reliability.model.reading import NO_EVIDENCE, Reading


def aggregate(needs: Sequence[str], readings: Mapping[str, Reading], formula: Callable[..., float | None]) -> Reading:
    """Return the reading of a formula over the values of `needs`, in their order; None where a part has no value.

    Its runs are those of the part with most runs behind it, for parts look at the same window; its `parts` are those that
    had a value. Where a part counts ends without error as success, so does the aggregate, and its note says so.

    >>> parts = {"brier_score": Reading(0.9, 12), "robustness": Reading(None, 0)}
    >>> aggregate(("brier_score", "robustness"), parts, lambda brier, robust: brier)
    Reading(value=0.9, runs=12, parts=('brier_score',), note='')
    """
    found = {name: readings.get(name, NO_EVIDENCE) for name in needs}
    value = formula(*(reading.value for reading in found.values()))
    if value is None:
        return NO_EVIDENCE
    present = tuple(name for name, reading in found.items() if reading.value is not None)
    by_status = sum(ENDS_COUNT in found[name].note for name in present)
    return noted(Reading(value, max(found[name].runs for name in present), present), by_status)


class Composite(Derived):
    """A number that a formula makes of the values of `needs`, in their order."""

    __slots__ = ()

    formula: ClassVar[Callable[..., float | None]]

    def derive(self, readings: Mapping[str, Reading]) -> Reading:
        return aggregate(self.needs, readings, self.formula)
