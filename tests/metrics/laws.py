"""The laws that every metric keeps, as checks of any metric. Each raises `LawBroken`, which says
what was read and expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from otel_reliability.metrics.base import Derived, Metric
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row

Make: TypeAlias = Callable[[], Metric]
"""What makes an empty metric: its class, or its class with settings."""

Reference: TypeAlias = Callable[[Sequence[Row]], float | None]
"""The plain formula over all rows of a window."""

TOLERANCE = 1e-12


class LawBroken(AssertionError):
    """A metric did what none may do."""


def said(metric: Metric) -> tuple[object, ...]:
    return (metric.value(), metric.companion_values(), metric.series())


def fed(make: Make, rows: Iterable[Row]) -> Metric:
    metric = make()
    for row in rows:
        metric.add(row)
    return metric


def evict_undoes_add(make: Make, rows: Sequence[Row], passing: Sequence[Row]) -> None:
    """Rows that came and went leave no trace, in whatever order they left."""
    metric = fed(make, rows)
    name = metric.spec.name
    before = said(metric)
    for row in passing:
        metric.add(row)
    metric.value()
    for row in (*passing[1::2], *passing[::2]):
        metric.evict(row)
    _same(f"{name} says after rows came and went", before, said(metric))


def order_is_nothing(make: Make, rows: Sequence[Row], passing: Sequence[Row]) -> None:
    """Check that a value depends on the rows in the window alone, not on their order or on rows
    that have left.
    """
    metric = make()
    for row in (*passing, *reversed(rows)):
        metric.add(row)
    for row in passing:
        metric.evict(row)
    _same(
        f"{metric.spec.name} says for the same rows in another order",
        said(fed(make, rows)),
        said(metric),
    )


def reading_changes_nothing(make: Make, rows: Sequence[Row]) -> None:
    """A metric that is read after each row ends like one that is read once, and says the same
    twice.
    """
    metric = make()
    for row in rows:
        metric.add(row)
        _same(f"{metric.spec.name} says when read twice", said(metric), said(metric))
    _same(f"{metric.spec.name} says when read at each step", said(fed(make, rows)), said(metric))


def rows_are_left_alone(make: Make, rows: Sequence[Row]) -> None:
    before = [repr(row) for row in rows]
    metric = fed(make, rows)
    metric.value()
    for row in rows:
        metric.evict(row)
    _same(f"{metric.spec.name} leaves of its rows", before, [repr(row) for row in rows])


def agrees(make: Make, reference: Reference, rows: Sequence[Row], window: int) -> None:
    """At every step of a sliding window the metric says what the plain formula says."""
    metric = make()
    for at, row in enumerate(rows):
        metric.add(row)
        if at >= window:
            metric.evict(rows[at - window])
        inside = rows[max(0, at - window + 1) : at + 1]
        expected = reference(inside)
        found = metric.value().value
        if not close(expected, found):
            raise LawBroken(
                f"{metric.spec.name} is {found} where the formula gives {expected}, over {inside}"
            )


def nothing_is_none(make: Make) -> None:
    """Without a row there is no data, so no value; and no runs stand behind it."""
    metric = make()
    if metric.spec.required_data != "none":
        _same(f"{metric.spec.name} says without data", None, metric.value().value)
    _same(f"{metric.spec.name} has behind it without a row", 0, metric.value().runs)


def is_in_range(spec: MetricSpec, reading: Reading) -> None:
    """A value lies within the bounds of its spec, is a number, and has runs behind it (but for what
    needs no data).
    """
    value = reading.value
    if value is None:
        return
    low = spec.low if spec.low is not None else -math.inf
    high = spec.high if spec.high is not None else math.inf
    if not low <= value <= high or not math.isfinite(value):
        raise LawBroken(f"{spec.name} is {value}, outside [{spec.low}, {spec.high}]")
    if reading.runs < 1 and spec.required_data != "none":
        raise LawBroken(f"{spec.name} is {value} with {reading.runs} runs behind it")


def is_documented(cls: type[Metric | Derived]) -> None:
    if not cls.__doc__:
        raise LawBroken(f"{cls.__name__} has no docstring")
    for field, told in cls.spec._asdict().items():
        if told == "":
            raise LawBroken(f"{cls.__name__} leaves {field} of its spec empty")
    if cls.spec.unit != "s" and (cls.spec.unit[0], cls.spec.unit[-1]) != ("{", "}"):
        raise LawBroken(
            f"{cls.__name__} has the unit {cls.spec.unit}; write it in braces, or s for seconds"
        )


def names_are_unique(specs: Iterable[MetricSpec]) -> None:
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            raise LawBroken(f"two metrics are called {spec.name}")
        seen.add(spec.name)


def close(expected: float | None, found: float | None) -> bool:
    """Return whether two values agree: both None, or numbers less than 1e-12 (of the greater, where
    they exceed 1) apart.
    """
    if expected is None or found is None:
        return expected is found
    return math.isclose(expected, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _same(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise LawBroken(f"what {what} is {found}, not {expected}")
