from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.stability.effect_agreement import EffectAgreement
from otel_reliability.metrics.stability.tables import Parting, tasks_by_disagreement
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.testing import row
from tests.metrics.recorded import gemini_rows, taubench_rows
from tests.validation.prediction import auroc, run_numbers, spearman, tasks_of


def attempt(*effects: tuple[str, bytes | None], task: str | None = "t", **fields: Any) -> Row:
    return row("", task=task, effects=frozenset(effects), **fields)


def agreement_of(rows: Iterable[Row], settings: Settings = DEFAULTS) -> EffectAgreement:
    metric = EffectAgreement(settings)
    for one in rows:
        metric.add(one)
    return metric


def test_unknown_arguments_are_compared_by_tool_and_said() -> None:
    rows = [
        attempt(("cancel", None)),
        attempt(("cancel", b"1"), ("cancel", b"2")),
        attempt(("cancel", b"3")),
    ]
    reading = agreement_of(rows).value()
    assert reading.value == pytest.approx(2 / 3)
    assert reading.note == "arguments unknown in 1 runs: their effects are compared by tool name"


def test_beyond_the_limit_the_latest_count_and_it_is_said() -> None:
    rows = [attempt(("pay", bytes([n]))) for n in range(5)]
    reading = agreement_of(rows, Settings(limits=LimitSettings(paths=2))).value()
    assert reading[:2] == (0.0, 2)
    assert "3 earlier runs are left out" in reading.note


def test_distance_is_the_mean_distance_to_the_others() -> None:
    same = attempt(("pay", b"1"))
    again = attempt(("pay", b"1"))
    odd = attempt(("cancel", b"1"))
    agreement = agreement_of([same, again, odd, attempt(("x", b"1"), task="u")])
    assert [agreement.distance(one).value for one in (same, again, odd)] == [0.5, 0.5, 1.0]
    assert agreement.distance(odd).runs == 2


def test_distance_of_a_lone_run_is_none() -> None:
    alone = attempt(("pay", b"1"))
    assert agreement_of([alone]).distance(alone).value is None
    assert agreement_of([alone]).distance(row("", task="t")).value is None


def test_table_names_the_effects_in_which_attempts_part() -> None:
    both = (("pay", b"1"), ("mail", b"secret"))
    rows = [
        attempt(*both),
        attempt(*both),
        attempt(*both),
        attempt(("pay", b"1"), ("mail", b"other"), ("cancel", b"1")),
    ]
    (line,) = tasks_by_disagreement(rows)
    assert line[:2] == ("t", 4)
    assert line.disagreement == pytest.approx(3 * (1 - 1 / 4) / 6)
    assert line.partings == (Parting("cancel", 1), Parting("mail", 3), Parting("mail", 1))
    assert "secret" not in str(line)


def test_table_counts_known_failures() -> None:
    outcomes = (Outcome.FAILURE, Outcome.SUCCESS, Outcome.COMPLETED)
    (line,) = tasks_by_disagreement([attempt(outcome=outcome) for outcome in outcomes])
    assert (line.judged, line.failed) == (2, 1)


def foretold(rows: Sequence[Row]) -> tuple[float, float]:
    """AUROC of a run's failure by its effect distance; Spearman of a task's mean with its share of
    failures.
    """
    tasks = tasks_of(rows, run_numbers(rows)["effect distance"])
    return auroc(tasks), spearman(tasks)


def test_it_foretells_failures_of_recorded_calls() -> None:
    assert foretold(gemini_rows()) == (pytest.approx(0.81, abs=0.01), pytest.approx(0.76, abs=0.01))


def test_it_foretells_failures_from_spans() -> None:
    assert foretold(taubench_rows()) == (
        pytest.approx(0.78, abs=0.01),
        pytest.approx(0.63, abs=0.01),
    )
