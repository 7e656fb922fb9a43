"""An agent that fails every time, in the same way: every surface says so first."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest
from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.metrics.success.verdict import Verdict
from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.recording import for_report
from otel_reliability.report import badge, gate, junit, markdown
from otel_reliability.report import json as json_report
from otel_reliability.report.target import parse
from otel_reliability.report.view import ReportView
from otel_reliability.report.words import worst_first
from otel_reliability.ui import report_file
from tests.report.build import attempts, printed, report, run_spans, runs, with_min_runs

OBJECTIVES = [{"agent": "refund*", "errors": 0.1}, {"errors": 0.5}]


def crashing(runs: int, *, agent: str = "crasher", of: int = 0) -> list[RawSpan]:
    """So many runs that end in an error, of so many in all; every run takes the same path."""
    found: list[RawSpan] = []
    for number in range(1, max(runs, of) + 1):
        root, *steps = run_spans(number, "lookup", agent=agent)
        found += [replace(root, status=STATUS_ERROR) if number <= runs else root, *steps]
    return found


def report_on(tmp_path: Path, spans: Sequence[RawSpan]) -> ReportView:
    return report(tmp_path, spans, with_min_runs(2))


def test_an_objective_holds_for_the_agents_that_it_names(tmp_path: Path) -> None:
    settings = Settings.load({"metrics": {"min_runs": 2}, "objectives": OBJECTIVES})
    spans = crashing(6, of=20, agent="refunds")
    others = [
        replace(one, trace_id=one.trace_id[:-2] + b"\xff" + one.trace_id[-1:])
        for one in crashing(6, of=20, agent="faq")
    ]
    view = report(tmp_path, [*spans, *others], for_report(settings))
    found = {agent.agent: agent for agent in view.agents}

    assert found["refunds"].verdict is Verdict.FAILING
    assert found["faq"].verdict is not Verdict.FAILING
    page = " ".join(printed(view).split())
    assert "Misses its objective of at most 10 % errors" in page
    assert "objective: at most 10 % errors; 6 of 20 runs failed, 2 may: the error budget" in page
    assert found["refunds"].metrics["error_budget_left"].value == pytest.approx(-2.0)
    assert found["faq"].metrics["objective"].value == pytest.approx(0.5)


def test_a_badge_says_how_often_an_agent_succeeds_where_its_score_looks_better(
    tmp_path: Path,
) -> None:
    often = report_on(tmp_path, crashing(10, of=20)).agents[0]
    seldom = report_on(tmp_path, crashing(1, of=20)).agents[0]

    assert (often.verdict, often.badge) == (
        Verdict.STABLE,
        "🟠 50 % end in errors | 🟢 STABLE 100/100",
    )
    assert seldom.badge == "🟢 STABLE 100/100"


def text_of_json(view: ReportView) -> str:
    [agent] = json.loads(json_report.render(view))["agents"]
    assert (agent["verdict"], agent["error_rate"], agent["success_rate"]) == ("failing", 1.0, 0.0)
    return str(agent["badge"])


def text_of_junit(view: ReportView) -> str:
    cases = fromstring(junit.render(view)).iter("testcase")
    [failure] = [case.find("failure") for case in cases if case.get("name") == "verdict"]
    assert failure is not None
    return failure.get("message", "")


SURFACES: dict[str, Callable[[ReportView], str]] = {
    "terminal": printed,
    "markdown": markdown.render,
    "html": lambda view: report_file.render(view, None),
    "json": text_of_json,
    "junit": text_of_junit,
    "badge": lambda view: str(view.agents[0].badge),
    "badge-svg": lambda view: badge.svg(
        view.agents[0].score, success=badge.Half("❌ FAILING 0 % succeed", Tier.CRITICAL)
    ),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_a_failing_agent_is_called_failing_everywhere(surface: str, tmp_path: Path) -> None:
    view = report_on(tmp_path, crashing(12))

    assert view.agents[0].score == 100.0
    assert "failing" in SURFACES[surface](view).lower()
    assert "consistent and predictable" not in SURFACES[surface](view)


def test_the_words_of_the_verdict_name_success_and_stability(tmp_path: Path) -> None:
    shown = " ".join(printed(report_on(tmp_path, crashing(12))).split())

    assert (
        "Fails more often than it succeeds: succeeds in 0 % of 12 runs; takes the same "
        "path every time." in shown
    )
    assert "12 of 12 runs ended in an error, 100 % (76 % to 100 % at 95 % confidence)" in shown


def test_half_of_the_runs_crashing_is_seen_without_any_label(tmp_path: Path) -> None:
    [agent] = report_on(tmp_path, crashing(10, of=20)).agents

    assert (agent.success_rate, agent.error_rate) == (None, 0.5)
    assert agent.grade is not None
    assert agent.grade.name == "UNSTABLE"


def test_errors_and_failed_calls_are_said_together(tmp_path: Path) -> None:
    """The first runs end in an error, and their only call fails."""
    found: list[RawSpan] = []
    for number in range(1, 21):
        root, *steps = run_spans(number, "lookup", failed="lookup" if number <= 8 else "")
        found += [replace(root, status=STATUS_ERROR) if number <= 8 else root, *steps]
    shown = " ".join(printed(report_on(tmp_path, found)).split())

    assert "40 % of 20 runs ended in an error, and 40 % of the tool calls failed" in shown


def test_the_tool_whose_calls_fail_is_named(tmp_path: Path) -> None:
    spans = [
        one
        for number in range(1, 21)
        for one in run_spans(number, "look price pay", failed="price" if number % 2 else "")
    ]
    shown = " ".join(printed(report_on(tmp_path, spans)).split())

    assert "10 of 60 tool calls failed, in 10 of 20 runs; most often price. The latest" in shown


def test_the_failing_agent_comes_first(tmp_path: Path) -> None:
    unlike = [run_spans(100 + number, path) for number, path in enumerate(("a b", "c", "d e f"))]
    spans = [*crashing(12), *(one for run in unlike for one in run)]

    agents = worst_first(report_on(tmp_path, spans).agents)

    assert [agent.agent for agent in agents] == ["crasher", "support"]
    assert agents[0].verdict is Verdict.FAILING


def test_why_names_the_runs_and_the_tasks_that_fail(tmp_path: Path) -> None:
    runs = [
        run_spans(number, "lookup pay", task="refund-7", success=number % 2 == 0)
        for number in range(1, 7)
    ]
    shown = printed(report_on(tmp_path, [one for run in runs for one in run]))

    assert "3 of 6 runs failed. The latest, by trace:" in shown
    assert f"{5:032x}  task refund-7, after pay" in shown
    assert "refund-7: 3 of 6 succeed" in shown


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("success_rate>=0.9", "Runs that fail: 12 of 12 runs failed, 12 by an error."),
        ("error_rate<=0.1", f"  {12:032x}  ended in an error, after lookup"),
        ("reliability.passhat_k>=90", "Runs that fail: 12 of 12 runs failed"),
        ("score>=101", ""),
    ],
)
def test_a_gate_that_fails_says_why(target: str, reason: str, tmp_path: Path) -> None:
    [result] = gate.check(report_on(tmp_path, crashing(12)), [parse(target)], 5)

    assert result.state is gate.TargetState.FAILED
    assert any(line.startswith(reason) for line in result.reasons) or not reason
    assert result.reasons or not reason


def test_a_score_that_misses_its_target_names_the_largest_penalty(tmp_path: Path) -> None:
    paths = ["a b", "c", "d e f", "b a", "f", "a c e"]
    runs = [run_spans(number, path) for number, path in enumerate(paths, 1)]
    view = report_on(tmp_path, [one for run in runs for one in run])

    [result] = gate.check(view, [parse("tool_variance<=0.2")], 5)

    assert result.reasons[0].startswith("Tool variance −")


@pytest.mark.parametrize("target", ["success_rate>=0.9", "pass_rate>=0.9", "error_rate<=0.1"])
def test_a_gate_stops_it(target: str, tmp_path: Path) -> None:
    results = gate.check(report_on(tmp_path, crashing(12)), [parse(target)], 5)

    assert gate.exit_code(results) == 1
    assert (
        gate.exit_code(gate.check(dataclasses.replace(report_on(tmp_path, crashing(12))), [], 5))
        == 0
    )


def test_a_gate_that_does_not_ask_for_success_says_that_it_is_missing(tmp_path: Path) -> None:
    view = report_on(tmp_path, crashing(12))
    held = gate.check(view, [parse("score>=80")], 2)
    missed = gate.check(view, [parse("success_rate>=0.9")], 2)

    said = (
        "crasher: its verdict is failing: succeeds in 0 % of 12 runs; require success_rate or "
        "error_rate, too"
    )
    assert gate.flagged(held) == [said]
    assert (gate.exit_code(held), gate.exit_code(missed), gate.flagged(missed)) == (0, 1, [])


@pytest.mark.parametrize(("target", "status"), [("success_rate>=0.9", 1), ("success_rate>=0.6", 3)])
def test_a_rate_that_errors_keep_below_its_target_is_missed(
    tmp_path: Path, target: str, status: int
) -> None:
    [result] = found = gate.check(report_on(tmp_path, crashing(20, of=40)), [parse(target)], 2)

    assert gate.exit_code(found) == status
    assert status == 3 or result.sentence == (
        "crasher: success_rate is at most 65 %, required >= 0.9 (50 % of 40 runs failed)"
    )


def test_rates_of_a_part_of_the_runs_name_the_part(tmp_path: Path) -> None:
    """Three of four outcomes are unknown: the other runs are no successes."""
    known = [True, True, None, None, None, None, False, None, None, None, None, None]
    spans = [x for n, end in enumerate(known, 1) for x in run_spans(n, "look", success=end)]
    page = " ".join(printed(report(tmp_path, spans), 200).split())

    assert "ucceeds in 67 % of 3 runs with a known outcome" in page
    assert "1 of 3 runs with a known outcome failed. The latest, by trace:" in page
    assert "of 12 runs failed" not in page
    assert "with a known outcome" not in printed(report(tmp_path, attempts("t", True, False)))


def test_bounds_of_the_score_name_it(tmp_path: Path) -> None:
    shown = printed(report(tmp_path, runs(*["a b"] * 20)))

    assert re.search(r"^ *score between \d+ and 100 at 95 % confidence", shown, re.MULTILINE)
