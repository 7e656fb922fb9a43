from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_reliability.errors import ConfigurationError, UnknownMetric
from otel_reliability.model.span import RawSpan
from otel_reliability.report import gate
from otel_reliability.report.gate import TargetResult, TargetState
from otel_reliability.report.target import parse
from tests.report.build import attempts, chat, report, run_spans, runs

FIVE = attempts("refund", True, True, False, True, True)


def results(
    tmp_path: Path, spans: list[RawSpan], *targets: str, min_runs: int = 2
) -> list[TargetResult]:
    return gate.check(report(tmp_path, spans), [parse(target) for target in targets], min_runs)


def states(tmp_path: Path, spans: list[RawSpan], *targets: str, min_runs: int = 2) -> list[str]:
    return [result.state.name for result in results(tmp_path, spans, *targets, min_runs=min_runs)]


@pytest.mark.parametrize(
    ("target", "state"),
    [
        ("score>=100", "HELD"),
        ("score>100", "FAILED"),
        ("path_entropy<=0", "HELD"),
        ("path_entropy<0.0", "FAILED"),
        ("window.runs==5", "HELD"),
        ("window.runs!=5", "FAILED"),
        ("pass_hat_k.1>=0.8", "HELD"),
        ("pass_hat_k.1>0.8", "FAILED"),
        ("pass_at_k.2>=1", "HELD"),
        ("pass_at_k.8>=1", "MISSING"),
        ("reliability.passhat_k>=32", "HELD"),
        ("reliability.passhat_k>=33", "FAILED"),
        ("reliability.runs>=5", "HELD"),
        ('tasks["refund"].reliability.pass_at_k>=100', "HELD"),
        ("tasks['refund'].distinct_paths<=1", "HELD"),
        ('agents["support"].tier>=STABLE', "HELD"),
        ("tier<STABLE", "FAILED"),
        ("calibration>=0.5", "MISSING"),
    ],
)
def test_a_target_is_a_bound_on_a_number(tmp_path: Path, target: str, state: str) -> None:
    assert states(tmp_path, FIVE, target) == [state]


def test_a_path_without_an_agent_must_hold_for_every_agent(tmp_path: Path) -> None:
    spans = [*runs("a", "a"), *runs("a", "b", first=3, agent="other")]

    assert states(tmp_path, spans, "path_entropy<=0.5") == ["FAILED", "HELD"]
    assert states(tmp_path, spans, 'agents["support"].path_entropy<=0.5') == ["HELD"]


def test_a_target_of_a_task_must_hold_for_every_task(tmp_path: Path) -> None:
    spans = [*attempts("a", True, True), *attempts("b", True, False, first=3)]
    found = results(tmp_path, spans, "reliability.passhat_k>=90")

    assert {result.task: result.state.name for result in found} == {"a": "HELD", "b": "FAILED"}
    assert gate.exit_code(found) == 1


@pytest.mark.parametrize(
    ("spans", "target", "why"),
    [
        (runs("a"), "score>=1", "not enough data: 1 of the 2 runs that a score needs"),
        (
            runs("a"),
            "brier_score>=1",
            "not enough data: it needs 1 run with a confidence and a known outcome",
        ),
        (runs("a"), "reliability.runs>=1", "not enough data: it needs 1 run with a known outcome"),
        ([], "score>=1", "no agent has a run here"),
        ([], 'agents["support"].score>=1', "no agent has a run here"),
    ],
)
def test_missing_evidence_is_named(
    tmp_path: Path, spans: list[RawSpan], target: str, why: str
) -> None:
    [found] = results(tmp_path, spans, target)

    assert (found.state, found.why) == (TargetState.MISSING, why)


@pytest.mark.parametrize(
    ("state", "code"),
    [([], 0), (["HELD"], 0), (["HELD", "MISSING"], 3), (["MISSING", "FAILED", "HELD"], 1)],
)
def test_the_gravest_result_decides_the_exit_code(
    tmp_path: Path, state: list[str], code: int
) -> None:
    found = results(tmp_path, FIVE, "score>=1")

    assert gate.exit_code([found[0]._replace(state=TargetState[name]) for name in state]) == code


@pytest.mark.parametrize(
    "text",
    [
        "score",
        "score>=",
        "score>=high",
        ">=80",
        "score=>80",
        "score >= 80 or so",
        "agents[x].score>=1",
    ],
)
def test_what_is_no_target_is_refused_in_four_parts(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--require: .* is not a .*; write .*score>=80"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("scor>=80", "score"),
        ("reliability.passhat>=9", "reliability.passhat_k"),
        ("zzz>=1", "names no metric. Did you mean"),
    ],
)
def test_a_path_that_names_no_metric_shows_the_nearest(text: str, near: str) -> None:
    with pytest.raises(UnknownMetric, match=near):
        parse(text)


def test_an_agent_or_task_that_is_not_there_shows_the_nearest(tmp_path: Path) -> None:
    """A gate on nobody would hold for ever."""
    with pytest.raises(
        ConfigurationError, match="'suport' is not an agent with runs here; the nearest is support"
    ):
        results(tmp_path, FIVE, 'agents["suport"].score>=1')
    with pytest.raises(
        ConfigurationError, match="'refnd' is not a task with runs here; the nearest is refund"
    ):
        results(tmp_path, FIVE, 'tasks["refnd"].path_entropy<=1')


def test_names_with_quotes_and_dots_can_be_meant(tmp_path: Path) -> None:
    spans = [each for number in (1, 2) for each in run_spans(number, "a", agent='v1.2 "beta"')]

    assert states(tmp_path, spans, r'agents["v1.2 \"beta\""].window.runs>=2') == ["HELD"]


def test_five_runs_cannot_tell_four_of_five_from_nineteen_of_twenty(tmp_path: Path) -> None:
    [result] = results(tmp_path, FIVE, "pass_hat_k.1>=0.95")

    assert result.state is TargetState.FAILED
    assert result.doubt == (
        "5 runs cannot distinguish 0.8 from 0.95: 4 of 5 is 38 % to 96 % (Wilson, 95 %); "
        "5 runs pin a rate to ±44 points "
        "at worst. To distinguish them takes 43 runs."
    )


def test_a_rate_at_its_bound_is_not_decided(tmp_path: Path) -> None:
    """No number of runs tells a rate from itself."""
    [result] = results(tmp_path, FIVE, "pass_hat_k.1>=0.8")

    assert result.doubt.startswith("5 runs do not decide this: 4 of 5 is 38 % to 96 %")
    assert result.doubt.endswith("±5 points take 385 runs.")


def test_none_of_few_runs_is_not_decided_by_a_bound_of_none(tmp_path: Path) -> None:
    [result] = results(tmp_path, runs(*["a"] * 20), "error_rate<=0")

    assert result.state is TargetState.HELD
    assert result.doubt.startswith("20 runs do not decide this: 0 of 20 is 0 % to 16 % (Wilson")


def test_a_target_of_all_attempts_is_doubted_at_the_rate_where_it_turns(tmp_path: Path) -> None:
    """passhat_k of 90 % over 5 attempts asks for a pass rate of 98 %, which five passes do not
    show.
    """
    [result] = results(tmp_path, attempts("a", *[True] * 5), "reliability.passhat_k>=90")

    assert result.state is TargetState.HELD
    assert result.doubt.startswith(
        "5 runs cannot distinguish 1 from 0.979: 5 of 5 is 57 % to 100 %"
    )


def test_a_clear_result_is_not_doubted(tmp_path: Path) -> None:
    [result] = results(tmp_path, attempts("a", *[False] * 20), "pass_hat_k.1>=0.9")

    assert (result.state, result.doubt) == (TargetState.FAILED, "")


def test_a_number_whose_interval_holds_the_bound_is_doubted(tmp_path: Path) -> None:
    paths = ["a b", "a b", "a", "b a", "a b", "b", "a b", "a b"]
    [few] = results(tmp_path, runs(*paths), "path_entropy<=0.6")
    [more] = results(tmp_path, runs(*paths * 5), "path_entropy<=0.3")

    assert (
        few.doubt
        == "8 runs do not decide this: they are too few to bound the value at 95 % confidence."
    )
    assert more.doubt.startswith(
        "40 runs do not decide this: at 95 % confidence the value lies between 0."
    )


def test_money_that_misses_its_target_is_explained_by_what_was_spent_in_vain(
    tmp_path: Path,
) -> None:
    notes = {"reliability.run.cost": 2.0, "reliability.run.success": False}
    usage: Any = {"gen_ai__usage__output_tokens": 10}
    spans = [
        span
        for number in range(1, 7)
        for span in (
            *run_spans(number, "pay pay pay", failed="pay", notes=notes),
            chat(number, 100, **usage),
        )
    ]
    [result] = results(tmp_path, spans, "cost_per_run<=1")

    assert result.state is TargetState.FAILED
    assert result.reasons[0].startswith("Cost of retries and loops")
    assert not any(line.startswith("Runs that fail") for line in result.reasons)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("success_rate>=0.3", "2 runs prove little: 2 of 2 is 34 % to 100 % (Wilson, 95 %)."),
        ("success_rate>=0.9", "2 runs cannot distinguish 1 from 0.9: 2 of 2 is 34 % to 100 %"),
        ("error_rate<=0.7", "2 runs prove little: 0 of 2 is 0 % to 66 % (Wilson, 95 %)."),
        ("score>=80", "2 runs prove little: 5 are the fewest that bound a value."),
        ("tier>=stable", "2 runs prove little: 5 are the fewest that bound a value."),
        ("window.runs>=2", ""),
    ],
)
def test_a_target_that_holds_on_two_runs_says_how_little_they_prove(
    tmp_path: Path, target: str, sentence: str
) -> None:
    [result] = gate.check(report(tmp_path, attempts("pay", True, True)), [parse(target)], 2)

    assert result.state is gate.TargetState.HELD
    assert result.doubt.startswith(sentence)
    assert bool(result.doubt) is bool(sentence)
