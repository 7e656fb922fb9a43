"""effect_agreement, effect_distance, and the table of tasks by disagreement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.examples import row
from otel_reliability.metrics.stability.effect_agreement import EffectAgreement
from otel_reliability.metrics.stability.tables import Parting, tasks_by_disagreement
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from otel_reliability.model.span import RawSpan
from tests.metrics.recorded import gemini_rows, rows_from, taubench_rows, taubench_spans


def attempt(*effects: tuple[str, bytes | None], task: str | None = "t", **fields: Any) -> Row:
    """A run of a task with these effects."""
    return row("", task=task, effects=frozenset(effects), **fields)


def agreement_of(rows: Iterable[Row], settings: Settings = DEFAULTS) -> EffectAgreement:
    """The metric, fed."""
    metric = EffectAgreement(settings)
    for one in rows:
        metric.add(one)
    return metric


class TestAgreement:
    """The number about a window."""

    def test_runs_without_effects_agree(self) -> None:
        """Two attempts that changed nothing ended alike."""
        assert agreement_of([attempt(), attempt()]).value() == (1.0, 2, (), "")

    def test_an_effect_against_none_is_all_apart(self) -> None:
        """One attempt that cancels and one that does nothing share nothing."""
        assert agreement_of([attempt(("cancel", b"1")), attempt()]).value().value == 0

    def test_tasks_weigh_as_many_as_they_have_runs(self) -> None:
        """Three runs that agree and two that do not."""
        alike = [attempt(("pay", b"1"), task="a") for _ in range(3)]
        apart = [attempt(("pay", b"1"), task="b"), attempt(("pay", b"2"), task="b")]
        assert agreement_of([*alike, *apart]).value()[:2] == (pytest.approx(3 / 5), 5)

    def test_what_is_no_evidence(self) -> None:
        """Runs without a task, with unobservable tools, perturbed, or alone at their task."""
        rows = [
            attempt(task=None),
            attempt(task=None),
            row("", task="t"),
            attempt(condition="fault"),
            attempt(task="u"),
        ]
        assert agreement_of(rows).value() == (None, 0, (), "")

    def test_unknown_arguments_are_compared_by_tool_and_said(self) -> None:
        """A run whose arguments are hidden is compared by the names of its tools, with every other run."""
        rows = [attempt(("cancel", None)), attempt(("cancel", b"1"), ("cancel", b"2")), attempt(("cancel", b"3"))]
        reading = agreement_of(rows).value()
        assert reading.value == pytest.approx(2 / 3)
        assert reading.note == "arguments unknown in 1 runs: their effects are compared by tool name"

    def test_beyond_the_limit_the_latest_count_and_it_is_said(self) -> None:
        """Of more distinct sets of effects than are compared, those of the latest runs."""
        rows = [attempt(("pay", bytes([n]))) for n in range(5)]
        reading = agreement_of(rows, Settings(limits=LimitSettings(paths=2))).value()
        assert reading[:2] == (0.0, 2)
        assert "3 earlier runs are left out" in reading.note


class TestDistance:
    """effect_distance of one run."""

    def test_it_is_the_mean_distance_to_the_others(self) -> None:
        """Of the task's other runs in the window; the run itself is not among them."""
        same, again, odd = attempt(("pay", b"1")), attempt(("pay", b"1")), attempt(("cancel", b"1"))
        agreement = agreement_of([same, again, odd, attempt(("x", b"1"), task="u")])
        assert [agreement.distance(one).value for one in (same, again, odd)] == [0.5, 0.5, 1.0]
        assert agreement.distance(odd).runs == 2

    def test_no_other_run_no_value(self) -> None:
        """A run that is alone at its task, or that is no evidence, has no distance."""
        alone = attempt(("pay", b"1"))
        assert agreement_of([alone]).distance(alone).value is None
        assert agreement_of([alone]).distance(row("", task="t")).value is None


class TestTable:
    """The tasks to look at."""

    def test_it_names_the_effects_in_which_attempts_part(self) -> None:
        """The tool and how many attempts did it, the most even split first; what all did is not told, arguments never are."""
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

    def test_the_most_apart_come_first(self) -> None:
        """Tasks are ordered by disagreement, of equals by name, and tasks of one run are left out."""
        rows = [
            *(attempt(("pay", b"1"), task=task) for task in "ccaab"),
            *(attempt(("pay", bytes([n])), task="z") for n in range(2)),
        ]
        assert [line.task for line in tasks_by_disagreement(rows)] == ["z", "a", "c"]

    def test_known_failures_stand_beside(self) -> None:
        """Where outcomes are known, how many attempts failed."""
        outcomes = (Outcome.FAILURE, Outcome.SUCCESS, Outcome.COMPLETED)
        (line,) = tasks_by_disagreement([attempt(outcome=outcome) for outcome in outcomes])
        assert (line.judged, line.failed) == (2, 1)


def foretold(rows: Sequence[Row]) -> tuple[float, float]:
    """AUROC of a run's failure by its effect distance; Spearman of a task's mean with its share of failures."""
    agreement, tasks = agreement_of(rows), defaultdict[str, list[tuple[float, bool]]](list)
    for one in rows:
        distance = agreement.distance(one).value
        if distance is not None and one.success is not None:
            tasks[one.task or ""].append((distance, not one.success))
    runs = [run for task in tasks.values() for run in task]
    means = [np.mean(task, axis=0).round(9) for task in tasks.values()]  # equal means are ties, to the last digit
    spearman = np.corrcoef(ranks([mean[0] for mean in means]), ranks([mean[1] for mean in means]))[0, 1]
    return auroc([run for run, failed in runs if failed], [run for run, failed in runs if not failed]), float(spearman)


def auroc(failed: Sequence[float], succeeded: Sequence[float]) -> float:
    """How often a failed run is farther off than a succeeded one; ties count half."""
    return float(np.mean([(one > other) + 0.5 * (one == other) for one in failed for other in succeeded]))


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks, ties sharing their mean."""
    return [sum(other < value for other in values) + sum(other == value for other in values) / 2 for value in values]


def test_it_foretells_failures_of_recorded_calls() -> None:
    """Ten tasks, eight attempts each: AUROC .81, Spearman .76."""
    assert foretold(gemini_rows()) == (pytest.approx(0.81, abs=0.01), pytest.approx(0.76, abs=0.01))


def test_it_foretells_failures_from_spans() -> None:
    """Fifty tasks, four attempts each, read from spans: AUROC .78, Spearman .63."""
    assert foretold(taubench_rows()) == (pytest.approx(0.78, abs=0.01), pytest.approx(0.63, abs=0.01))


def test_order_and_duplicates_change_no_effect() -> None:
    """The same spans backwards, and each of them twice, give the same effects."""
    spans = taubench_spans()
    expected = {(one.run_id, one.effects) for one in taubench_rows()}
    assert {(one.run_id, one.effects) for one in rows_from([*reversed(spans), *spans[:500]])} == expected


def test_without_captured_content_tools_alone_are_compared() -> None:
    """Arguments that were not captured: the same runs and tools, compared by name, and the reading says so."""
    bare = rows_from([span._replace(attributes=without_content(span)) for span in taubench_spans()])
    assert [tools_of(one) for one in bare] == [tools_of(one) for one in taubench_rows()]
    reading = agreement_of(bare).value()
    assert reading.value is not None
    assert "compared by tool name" in reading.note
    assert reading.value > (agreement_of(taubench_rows()).value().value or 0)


def without_content(span: RawSpan) -> dict[str, Any]:
    """The attributes of a span but for the arguments and results of its call."""
    return {key: value for key, value in span.attributes.items() if "arguments" not in key and "result" not in key}


def tools_of(one: Row) -> list[str]:
    """The tools of a row's effects."""
    return sorted({tool for tool, _ in one.effects or ()})


@given(st.permutations(range(12)))
def test_the_order_of_runs_is_nothing(order: list[int]) -> None:
    """Agreement and distances are the same in whatever order the runs came."""
    rows = [attempt(*((t, b"1") for t in ("pay", "mail", "cancel")[: n % 4]), task="ab"[n % 2]) for n in range(12)]
    plain, shuffled = agreement_of(rows), agreement_of([rows[n] for n in order])
    assert plain.value() == shuffled.value()
    assert [plain.distance(one) for one in rows] == [shuffled.distance(one) for one in rows]
