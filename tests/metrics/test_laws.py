"""The laws of metrics, for all of the table; and that each law catches the bug it is there for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import LimitSettings, MetricSettings, Settings
from otel_reliability.metrics import SPECS, TABLE
from otel_reliability.metrics.base import DEFAULTS, Derived, Metric
from otel_reliability.metrics.stability.path_entropy import PathEntropy
from otel_reliability.metrics.stability.score import Score
from otel_reliability.metrics.stability.token_budget_pressure import TokenBudgetPressure
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row
from otel_reliability.testing import row, rows_of
from tests.metrics import laws
from tests.metrics.reference import NAIVE as STABILITY
from tests.metrics.reference_coding import NAIVE as CODING
from tests.metrics.reference_evaluation import NAIVE as EVALUATION
from tests.metrics.strategies import rows

METRICS = [cls for cls in TABLE if issubclass(cls, Metric)]
UNGROUPED = Settings(
    metrics=MetricSettings(group_by="none", retry_threshold=2), limits=LimitSettings(paths=2)
)

HARNESS = Settings(metrics=MetricSettings(profile="hal-harness"))
SETTINGS = [DEFAULTS, UNGROUPED]
FORMULAS = {**STABILITY, **EVALUATION, **CODING}
AGGREGATES = {"consistency", "predictability", "robustness", "safety", "reliability"}
some_rows = given(rows=rows())
"""The rows are drawn once for all metrics: to draw them costs far more than to count them."""


def each_metric() -> Iterator[laws.Make]:
    for settings in SETTINGS:
        for cls in METRICS:
            yield partial(cls, settings)


@pytest.mark.parametrize("law", [laws.evict_undoes_add, laws.order_is_nothing])
@some_rows
def test_what_has_left_changes_nothing(
    law: Callable[[laws.Make, list[Row], list[Row]], None], rows: list[Row]
) -> None:
    for make in each_metric():
        law(make, rows, others(rows))


@pytest.mark.parametrize("law", [laws.reading_changes_nothing, laws.rows_are_left_alone])
@some_rows
def test_a_metric_only_counts(law: Callable[[laws.Make, list[Row]], None], rows: list[Row]) -> None:
    for make in each_metric():
        law(make, rows)


@some_rows
def test_values_are_in_range(rows: list[Row]) -> None:
    for make in each_metric():
        metric = laws.fed(make, rows)
        for spec, reading in zip(
            (metric.spec, *metric.companions),
            (metric.value(), *metric.companion_values()),
            strict=True,
        ):
            laws.is_in_range(spec, reading)


def formula(name: str, settings: Settings = DEFAULTS) -> laws.Reference:
    return lambda rows: FORMULAS[name](rows, settings)


@pytest.mark.parametrize("settings", [DEFAULTS, Settings(metrics=UNGROUPED.metrics), HARNESS])
@given(rows=rows(), window=st.sampled_from([1, 2, 5, 10, 24]))
def test_metrics_agree_with_their_formulas(
    settings: Settings, rows: list[Row], window: int
) -> None:
    for cls in METRICS:
        laws.agrees(partial(cls, settings), formula(cls.spec.name, settings), rows, window)


def test_every_metric_has_a_formula() -> None:
    """Aggregates are held by the oracle `seed1`."""
    assert {spec.name for spec in SPECS} - AGGREGATES == FORMULAS.keys()


@pytest.mark.parametrize("cls", METRICS, ids=lambda cls: cls.spec.name)
def test_nothing_is_none(cls: type[Metric]) -> None:
    laws.nothing_is_none(cls)


@pytest.mark.parametrize("cls", TABLE, ids=lambda cls: cls.spec.name)
def test_specs_are_documented(cls: type[Metric | Derived]) -> None:
    laws.is_documented(cls)


def test_names_are_unique() -> None:
    laws.names_are_unique(SPECS)


# --- Each law catches the bug it is there for -----------------------------------------------------


class Forgetful(PathEntropy):
    """Keeps what should leave."""

    def count(self, row: Row, sign: int) -> None:
        if sign > 0:
            super().count(row, sign)


class Drifting(TokenBudgetPressure):
    """Sums floats, as everybody would."""

    total = 0.0
    runs = 0

    def count(self, row: Row, sign: int) -> None:
        self.total = self.total + sign * (row.pressure or 0.0)
        self.runs = self.runs + sign

    def value(self) -> Reading:
        return Reading(self.total / self.runs, self.runs) if self.runs else Reading(None, 0)


class LastWins(Drifting):
    """Depends on the order in which rows came."""

    def count(self, row: Row, sign: int) -> None:
        self.total = row.pressure or 0.0
        self.runs = self.runs + sign


class Nervous(Drifting):
    """Says something else each time."""

    def value(self) -> Reading:
        self.total += 1
        return super().value()


class Confident(Drifting):
    """Calls no data a perfect 0, and adds one to the truth."""

    def value(self) -> Reading:
        return Reading(1.0 + self.total, self.runs)


class Silent(Drifting):
    """Leaves a field empty."""

    spec = TokenBudgetPressure.spec._replace(improve="")


Undocumented = type("Undocumented", (Drifting,), {})


class Unbraced(TokenBudgetPressure):
    """Has a unit that Prometheus would append to its name."""

    spec = TokenBudgetPressure.spec._replace(unit="ratio")


SOME = [row(pressure=0.1), row("a", pressure=0.7)]
PASSING = [row("b", pressure=1e16), row("c", pressure=0.3)]

BROKEN: list[tuple[Callable[[], None], str]] = [
    (
        lambda: laws.evict_undoes_add(Forgetful, rows_of("a", "a"), PASSING),
        "after rows came and went",
    ),
    (lambda: laws.evict_undoes_add(Drifting, SOME, PASSING), "after rows came and went"),
    (lambda: laws.order_is_nothing(LastWins, SOME, []), "for the same rows in another order"),
    (lambda: laws.reading_changes_nothing(Nervous, SOME), "read twice"),
    (lambda: laws.nothing_is_none(Confident), "without data"),
    (
        lambda: laws.agrees(Confident, formula("token_budget_pressure"), SOME, 2),
        "where the formula gives",
    ),
    (lambda: laws.is_in_range(TokenBudgetPressure.spec, Reading(1.5, 3)), "outside"),
    (lambda: laws.is_in_range(TokenBudgetPressure.spec, Reading(float("nan"), 3)), "outside"),
    (lambda: laws.is_in_range(TokenBudgetPressure.spec, Reading(0.5, 0)), "0 runs behind it"),
    (lambda: laws.is_documented(Silent), "leaves improve of its spec empty"),
    (lambda: laws.is_documented(Undocumented), "has no docstring"),
    (lambda: laws.is_documented(Unbraced), "write it in braces"),
    (
        lambda: laws.names_are_unique([PathEntropy.spec, PathEntropy.spec]),
        "two metrics are called path_entropy",
    ),
]


@pytest.mark.parametrize(
    ("check", "complaint"), BROKEN, ids=[f"{at}-{told}" for at, (_, told) in enumerate(BROKEN)]
)
def test_a_law_catches_its_bug(check: Callable[[], None], complaint: str) -> None:
    with pytest.raises(laws.LawBroken, match=complaint):
        check()


def test_a_metric_that_writes_on_rows_is_caught() -> None:
    class Scribbling(Drifting):
        """Writes into a row."""

        def count(self, row: Row, sign: int) -> None:
            cast("list[str]", row.signals).append("seen")

    with pytest.raises(laws.LawBroken, match="leaves of its rows"):
        laws.rows_are_left_alone(Scribbling, [row(signals=[], pressure=0.5)])


def others(rows: Sequence[Row]) -> list[Row]:
    """Half of the rows as other runs, so that no run is there twice."""
    return [replace(row, run_id=f"other-{row.run_id}", end_ns=row.end_ns + 1) for row in rows[::2]]


def test_what_is_not_told_apart_is_one_series() -> None:
    """A metric, and a number made of metrics, is emitted as it reads unless it says otherwise."""
    readings = {name: Reading(0.0, 9) for name in Score.needs}
    assert Score().series(readings) == (((), Score().derive(readings)),)
    metric = laws.fed(PathEntropy, rows_of("a", "a"))
    assert metric.series() == (((), metric.value()),)
