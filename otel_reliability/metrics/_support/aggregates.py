"""Numbers made of other numbers: which parts existed is always told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from otel_reliability.metrics._support.outcomes import ENDS_COUNT, told
from otel_reliability.model.reading import NO_EVIDENCE, Reading


def aggregate(needs: Sequence[str], readings: Mapping[str, Reading], formula: Callable[..., float | None]) -> Reading:
    """The reading of a formula over the values of `needs`, in their order; None goes in where a part has no evidence.

    Its runs are those of the part with most runs behind it, for parts look at the same window; its `parts` are those that
    had a value. Where a part counts ends without error as success, so does what is made of it, and says so.

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
    return told(Reading(value, max(found[name].runs for name in present), present), by_status)
