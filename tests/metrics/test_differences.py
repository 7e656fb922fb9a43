from __future__ import annotations

import random

from hypothesis import given

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.metrics import SPECS
from otel_reliability.metrics.differences import differences
from otel_reliability.metrics.uncertainty import intervals
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row, rows_of
from otel_reliability.windows.window import AgentWindow
from tests.metrics.strategies import rows

USUAL = ["search reply"] * 8 + ["search read reply", "reply"]


def draw(n: int, seed: int, paths: list[str] = USUAL) -> list[Row]:
    dice = random.Random(seed)
    return [one._replace(pressure=dice.random()) for one in rows_of(*dice.choices(paths, k=n))]


def test_like_runs_do_not_differ() -> None:
    false = sum(any(one.clear for one in differences(draw(30, seed), draw(30, 100 + seed))) for seed in range(12))
    assert false <= 1


def test_a_difference_is_clear_and_named() -> None:
    found = {one.name: one for one in differences(draw(40, 1), draw(40, 2, ["a b", "b a", "c", "d e f"]))}
    assert found["path_entropy"].clear
    assert found["path_entropy"].before < found["path_entropy"].after
    assert not found["token_budget_pressure"].clear


def test_what_has_no_interval_is_not_judged() -> None:
    found = {one.name: one.p for one in differences(draw(4, 1), draw(40, 2))}
    assert found["path_entropy"] is None
    assert found["window.runs"] is None


def test_of_runs_of_which_only_failures_are_known_no_pass_rate_is_compared() -> None:
    """A window of them has none either: an end without error is no success."""
    failed = Outcome.FAILURE
    before, after = (
        [row("search", task=f"task {at % 6}", outcome=failed if at < failures else Outcome.UNKNOWN) for at in range(60)]
        for failures in (30, 6)
    )
    absent = {spec.name for spec in SPECS if measured(before).reading(spec.name).value is None}

    assert "pass_hat_k" in absent
    assert absent.isdisjoint(one.name for one in differences(before, after))
    assert absent.isdisjoint(intervals(before))


def measured(rows: list[Row]) -> AgentWindow:
    window = AgentWindow(WindowSettings("all", last=len(rows)), Settings())
    for one in rows:
        window.insert(one)
    return window


@given(rows(least=6, most=10))
def test_the_same_runs_never_differ(both: list[Row]) -> None:
    assert not any(one.clear for one in differences(both, both))
