from __future__ import annotations

import random

from hypothesis import given
from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.metrics import SPECS
from otel_reliability.metrics.uncertainty import intervals
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.report.build import AgentSource, agent_view, compared
from otel_reliability.report.view import AgentView
from otel_reliability.testing import KEY, row, rows_of
from tests.metrics.strategies import rows
from tests.windows.runs import window_over

USUAL = ["search reply"] * 8 + ["search read reply", "reply"]


def draw(n: int, seed: int, paths: list[str] = USUAL) -> list[Row]:
    dice = random.Random(seed)
    return [replace(one, pressure=dice.random()) for one in rows_of(*dice.choices(paths, k=n))]


def view(rows: list[Row]) -> AgentView:
    window = window_over(rows)
    return agent_view(
        AgentSource(KEY, window, window.rows(), window.readings(), 0, ()), Settings(), len(rows)
    )


def differs(before: list[Row], after: list[Row]) -> dict[str, bool]:
    """Return, of each number that is tested, whether it differs by more than chance."""
    found = compared(view(before), view(after)).metrics
    return {
        name: one.more_than_chance
        for name, one in found.items()
        if one.more_than_chance is not None
    }


def test_like_runs_do_not_differ() -> None:
    false = sum(any(differs(draw(30, seed), draw(30, 100 + seed)).values()) for seed in range(12))
    assert false <= 1


def test_a_difference_is_clear_and_named() -> None:
    before = draw(40, 1)
    after = draw(40, 2, ["a b", "b a", "c", "d e f"])
    found = differs(before, after)
    assert (found["path_entropy"], found["token_budget_pressure"]) == (True, False)


def test_what_has_no_interval_is_not_judged() -> None:
    assert differs(draw(4, 1), draw(40, 2)).keys().isdisjoint({"path_entropy", "window.runs"})


def test_of_runs_of_which_only_failures_are_known_no_pass_rate_is_compared() -> None:
    """A window of them has none either: an end without error is no success."""
    failed = Outcome.FAILURE
    before, after = (
        [
            row(
                "search",
                task=f"task {at % 6}",
                outcome=failed if at < failures else Outcome.UNKNOWN,
            )
            for at in range(60)
        ]
        for failures in (30, 6)
    )
    absent = {spec.name for spec in SPECS if window_over(before).reading(spec.name).value is None}

    assert "pass_hat_k" in absent
    assert absent.isdisjoint(differs(before, after))
    assert absent.isdisjoint(intervals(before))


@given(rows(least=6, most=10))
def test_the_same_runs_never_differ(both: list[Row]) -> None:
    assert not any(differs(both, both).values())
