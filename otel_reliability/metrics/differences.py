"""Which numbers of two sets of runs differ by more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics import SPECS
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.uncertainty import intervals, readings_of
from otel_reliability.model.row import Row
from otel_reliability.statistics.intervals import Interval
from otel_reliability.statistics.significance import holm, two_sided

LEVEL: Final = 0.05


class Difference(NamedTuple):
    """One number, before and after. `p` is the chance of so large a difference between runs of one behaviour, adjusted for
    the number of metrics compared (Holm); None where a side has no interval, so that nothing can be said.
    """

    name: str
    before: float
    after: float
    p: float | None

    @property
    def clear(self) -> bool:
        """True if it is larger than chance."""
        return self.p is not None and self.p <= LEVEL


def differences(before: Sequence[Row], after: Sequence[Row], settings: Settings = DEFAULTS) -> list[Difference]:
    """Every number that both sides have, in the order of the table.

    A difference is weighed by the standard errors of its two intervals. With several metrics one of them would differ by
    chance alone: after Holm's adjustment, the chance of any false word among all of them is at most 5 %.

    >>> from otel_reliability.testing import rows_of
    >>> before, after = rows_of(*["search reply"] * 30), rows_of(*["search reply", "reply", "ask"] * 10)
    >>> for one in differences(before, after):
    ...     if one.name in {"path_entropy", "path_entropy_bits", "loops"}:
    ...         print(f"{one.name} {one.before:.2f} {one.after:.2f} {one.clear}")
    path_entropy 0.00 0.32 True
    path_entropy_bits 0.00 1.58 True
    loops 0.00 0.00 False
    """
    one, other = _readings(before, settings), _readings(after, settings)
    found = {
        name: (one[name], other[name]) for name in (spec.name for spec in SPECS) if name in one.keys() & other.keys()
    }
    chances = _chances(found, intervals(before, settings), intervals(after, settings))
    return [Difference(name, *values, chances.get(name)) for name, values in found.items()]


def _readings(rows: Sequence[Row], settings: Settings) -> dict[str, float]:
    readings = readings_of(rows, settings)
    return {name: reading.value for name, reading in readings.items() if reading.value is not None}


def _chances(
    values: Mapping[str, tuple[float, float]], before: Mapping[str, Interval], after: Mapping[str, Interval]
) -> dict[str, float]:
    known = [name for name in values if name in before and name in after]
    raw = [_chance(*values[name], hypot(before[name].error, after[name].error)) for name in known]
    return dict(zip(known, holm(raw), strict=True))


def _chance(before: float, after: float, error: float) -> float:
    if not error:
        return 1.0 if before == after else 0.0
    return two_sided((after - before) / error)
