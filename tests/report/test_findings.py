from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability import annotate
from otel_reliability.config import LimitSettings, WindowSettings
from otel_reliability.model.span import RawSpan
from otel_reliability.recording import REPORT_SETTINGS, for_report
from otel_reliability.report.missing import REQUIRED_DATA, RequiredData
from otel_reliability.report.view import Gap
from tests.report.build import agent_of, chat, report, runs


def sampled(number: int, state: str) -> list[RawSpan]:
    root, *rest = runs("a", first=number)
    return [replace(root, trace_state=state), *rest]


def test_a_plain_recording_needs_no_caveat(tmp_path: Path) -> None:
    steady = agent_of(tmp_path, runs("a", "a", task="refund"))
    unknown = agent_of(tmp_path, runs("a", "a"))

    assert steady.caveats == []
    assert unknown.caveats == [
        (
            "inputs unknown: variety of work counts as variance (score, path_entropy, "
            "path_entropy_bits, modal_path_share, tool_variance, tool_call_variation, "
            "path_similarity)"
        )
    ]


def test_a_sample_is_called_one(tmp_path: Path) -> None:
    half = "ot=th:8"
    whole = ""

    assert agent_of(tmp_path, [*sampled(1, half), *sampled(2, half)]).caveats[:1] == [
        "the runs are a sample and stand for about 4; the numbers are of the runs as they are"
    ]
    mixed = [*sampled(1, "ot=th:f"), *sampled(2, whole), *sampled(3, whole)]
    assert agent_of(tmp_path, mixed).caveats[0] == (
        "the runs were sampled at different rates: they are worth 1 equally sampled ones"
    )


def test_runs_that_were_left_out_are_counted(tmp_path: Path) -> None:
    few = for_report(REPORT_SETTINGS, WindowSettings(last=2))
    limit = replace(REPORT_SETTINGS, limits=LimitSettings(rows=2))

    for settings in (few, limit):
        assert agent_of(tmp_path, runs("a", "a", "a", task="refund"), settings).caveats == [
            "1 older run left out: the report covers the newest 2"
        ]


def test_a_warning_of_several_numbers_is_said_once(tmp_path: Path) -> None:
    bare = [
        replace(
            each,
            attributes={
                key: value for key, value in each.attributes.items() if "arguments" not in key
            },
        )
        for each in runs("a a", "a", task="refund")
    ]

    assert agent_of(tmp_path, bare).caveats[:1] == [
        (
            "arguments unknown in 2 of 2 runs: their calls are matched by tool alone "
            "(retry_explosion, retry_explosion_share, "
            "longest_retry_chain, retries_per_run, retry_tokens_per_run, "
            "retry_seconds_per_run, loops, loop_share, "
            "loop_tokens_per_run, loop_seconds_per_run)"
        )
    ]


def test_a_limit_that_was_hit_is_a_note(tmp_path: Path) -> None:
    crowded = for_report(replace(REPORT_SETTINGS, limits=LimitSettings(agents=1, tasks=1)))
    spans = [
        *runs("a", task="one"),
        *runs("a", first=2, task="two"),
        *runs("a", first=3, agent="other"),
    ]

    assert report(tmp_path, spans, crowded).notes == [
        "The limit of 1 agents was reached 1 time",
        "The limit of 1 tasks was reached 1 time",
    ]


# --- Reasons --------------------------------------------------------------------------------------


def reasons(tmp_path: Path, spans: list[RawSpan]) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {
        one.title: (one.sentence, one.details) for one in agent_of(tmp_path, spans).findings.reasons
    }


def test_nothing_is_told_of_what_costs_nothing(tmp_path: Path) -> None:
    assert reasons(tmp_path, runs("a", "a")) == {}


def test_reasons_stand_by_what_they_cost(tmp_path: Path) -> None:
    """Behind calls that fail, which cost no points."""
    spans = [*runs("f f f f", failed="f"), *runs("a b", "a", "a b", "a b", first=2)]
    first, *others = agent_of(tmp_path, spans).findings.reasons
    points = [reason.points for reason in others]

    assert first.sentence == (
        "4 of 11 tool calls failed, in 1 of 5 runs; most often f. The latest, by trace:"
    )

    assert points == sorted(points, key=lambda cost: (cost is None, -(cost or 0.0)))
    assert points[0] == pytest.approx(25 * 100 / 60)
    assert points[-1] is None


def test_without_rare_tools_the_unevenly_used_are_named(tmp_path: Path) -> None:
    sentence, details = reasons(tmp_path, runs("a b", "a", "a c", "a b c", "a"))["Tool variance"]

    assert sentence == "No tool is rare; the 3 tools are combined differently from run to run."
    assert details == ("b: 40 %, 2 of 5 runs", "c: 40 %, 2 of 5 runs")


def test_long_lists_are_cut_and_counted(tmp_path: Path) -> None:
    spans = [
        each for task in range(6) for each in runs("a", "b", first=2 * task + 1, task=f"t{task}")
    ]

    assert reasons(tmp_path, spans)["Path entropy"][1][-1] == "and 3 more tasks"


def test_retries_are_told_with_what_they_cost(tmp_path: Path) -> None:
    asking = chat(1, 1200, seconds=0.6, gen_ai__usage__output_tokens=34)
    [detail] = reasons(tmp_path, [*runs("f f f f", "a", failed="f"), asking])["Retry explosion"][1]

    assert detail == "00000000000000000000000000000001  f retried 3×, 1.5 s, 1,234 tokens"


def test_wasted_tokens_and_money_are_totalled(tmp_path: Path) -> None:
    spans = [
        *runs("f f", failed="f", notes={"reliability.run.cost": 0.3}),
        *(chat(1, 600, after=at, gen_ai__usage__output_tokens=400) for at in range(3)),
        *runs("a a", first=2),
        *runs("b", first=3),
    ]
    sentence, details = reasons(tmp_path, spans)["Cost of retries and loops"]

    assert sentence == "What calls that did no work cost, with the model calls that asked for them:"
    assert details == (
        "1 retry in 3 runs: 1,000 tokens, 500 ms, $0.1 in the 1 run whose cost is known",
        "1 repeated call in 3 runs: 500 ms",
    )
    assert "Cost of retries and loops" not in reasons(tmp_path, runs("a", "a"))


def test_odd_runs_are_told_with_their_task(tmp_path: Path) -> None:
    _, details = reasons(tmp_path, runs("a b", "a b", "a b", "x y z", "", task="t"))[
        "Runs unlike the others"
    ]

    assert details[:2] == (
        "00000000000000000000000000000004  1.000  task t, 3 steps",
        "00000000000000000000000000000005  1.000  task t, no tool called",
    )


def test_tasks_that_end_in_different_changes_are_told_without_arguments(tmp_path: Path) -> None:
    paid = runs("pay", task="t")
    paid += [
        replace(
            each, attributes={**each.attributes, "gen_ai.tool.call.arguments": '{"cents": 1250}'}
        )
        for each in runs("pay", first=2, task="t")
    ]
    spans = [*paid, *runs("look", first=3, task="t", success=False)]

    assert reasons(tmp_path, spans)["Changes to the world"][1] == (
        "task t: 100 % apart: pay: 2 different calls, each by 1 of 3; 1 of 1 failed",
    )


# --- Missing data ---------------------------------------------------------------------------------


def gaps(tmp_path: Path, spans: list[RawSpan]) -> dict[str, Gap]:
    return {gap.missing: gap for gap in agent_of(tmp_path, spans).missing}


def test_what_is_missing_is_counted_among_those_that_could_have_it(tmp_path: Path) -> None:
    """A context limit is wanted of runs with tokens only, a second attempt of runs with a task."""
    spans = [*runs("a"), *runs("a", "a", first=2, task="t"), *runs("a", first=4, task="u")]
    found = gaps(tmp_path, [*spans, chat(1, 5)])

    assert (found["task ids"].runs, found["task ids"].of) == (1, 4)
    assert (found["second attempts at a task"].runs, found["second attempts at a task"].of) == (
        1,
        3,
    )
    assert (found["tokens"].runs, found["tokens"].of) == (3, 4)
    assert (found["context limits"].runs, found["context limits"].of) == (1, 1)
    assert found.keys() >= {
        "outcomes",
        "confidence",
        "perturbed runs",
        "evaluated constraints",
        "conversation ids",
    }


def test_evidence_that_is_there_is_no_gap(tmp_path: Path) -> None:
    notes: dict[str, Any] = {"reliability.run.confidence": 0.9, "reliability.violations": []}
    spans = runs("a", "a", task="t", success=True, session="s", notes=notes)
    spans += runs(
        "a",
        first=3,
        task="t",
        success=True,
        session="s",
        notes={**notes, "reliability.condition": "fault"},
    )

    assert gaps(tmp_path, spans).keys() == {"tokens", "evaluations in sessions"}


@pytest.mark.parametrize("data", REQUIRED_DATA, ids=[data.missing for data in REQUIRED_DATA])
def test_remedies_name_what_there_is(data: RequiredData) -> None:
    call = data.remedy.partition("annotate(")[2].partition("=")[0]

    assert len(data.remedy) <= 80
    assert not call or call in inspect.signature(annotate).parameters
