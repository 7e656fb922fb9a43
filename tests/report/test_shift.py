"""An agent that breaks, or recovers, in the middle of its runs: every surface says when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.metrics.success.verdict import Verdict
from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.report import gate, json, words
from otel_reliability.report.next_steps import next_steps
from otel_reliability.report.target import parse
from otel_reliability.report.view import AgentView
from otel_reliability.testing import write_otlp
from otel_reliability.ui import report_file
from otel_reliability.ui.agent_list import line_of_view
from tests.cli.command_line import call
from tests.report.build import agent_of, loaded, printed, report, run_spans
from tests.report.schema import faults

BREAKS = [False] * 20 + [True] * 20
ALL_FAIL = "all of the latest 20 runs ended in an error, none of the 20 before"
LATEST = "the latest 20 runs failed"
SINCE = "since run 21, 2023-11-14 22:48 UTC, more runs fail (p < 0.001 over all moments)"


def erring(ends: Sequence[bool], tasks: Sequence[str | None] = ()) -> list[RawSpan]:
    """A run for each, those that are true end in an error."""
    found: list[RawSpan] = []
    for number, is_error in enumerate(ends, 1):
        task = tasks[number - 1] if tasks else None
        root, *steps = run_spans(number, "lookup", agent="broken", task=task)
        found += [replace(root, status=STATUS_ERROR) if is_error else root, *steps]
    return found


def outcomes(ends: Sequence[bool]) -> list[RawSpan]:
    """A run for each, those that are true fail."""
    pairs = enumerate(ends, 1)
    return [x for n, failed in pairs for x in run_spans(n, "lookup", success=not failed)]


def failures_of(agent: AgentView) -> list[str]:
    return [line for line in words.about(agent) if "since run" in line or "one after" in line]


def test_a_report_says_since_when_an_agent_fails(tmp_path: Path) -> None:
    page = " ".join(printed(report(tmp_path, erring(BREAKS)), 200).split())

    assert f"Fails now: {ALL_FAIL}; success unknown, 50 % of 40 runs ended in an error" in page
    assert "FAILING 20 runs in a row" in page
    assert SINCE in page


def test_a_gate_that_holds_says_since_when_an_agent_fails(tmp_path: Path) -> None:
    results = gate.check(report(tmp_path, erring(BREAKS)), [parse("error_rate<=0.6")], 2)

    assert gate.exit_code(results) == 0
    assert gate.flagged(results) == [
        f"broken: its verdict is failing: {LATEST}; require verdict or failed_in_a_row, too",
        f"broken: {ALL_FAIL}: {SINCE}",
    ]


def test_an_agent_that_fails_now_is_failing_whatever_it_did_before(tmp_path: Path) -> None:
    """Seven of eight runs succeed, but none of the latest ten."""
    found = agent_of(tmp_path, outcomes([False] * 70 + [True] * 10))

    assert (found.verdict, found.grade) == (Verdict.FAILING, Tier.CRITICAL)
    assert words.meaning(found).startswith(
        "Fails now: all of the latest 10 runs failed, none of the 70 before; succeeds in 88 % of"
    )
    assert line_of_view(found).penalty.sentence == "Fails now: the latest 10 runs failed."


def test_failures_of_old_are_no_verdict_on_an_agent_that_works(tmp_path: Path) -> None:
    found = agent_of(tmp_path, outcomes([False] * 35 + [True] * 15 + [False]))

    assert found.verdict is Verdict.STABLE


def test_the_document_has_the_numbers_and_the_sentence(tmp_path: Path) -> None:
    document = loaded(json.render(report(tmp_path, erring(BREAKS))))
    [agent] = document["agents"]

    assert list(faults(document)) == []
    assert agent["shift"]["sentence"] == ALL_FAIL
    assert (agent["shift"]["run"], agent["shift"]["failed"]) == (21, [0, 20])
    assert agent["shift"]["since"].startswith("2023-11-14T22:48:20")


def test_an_agent_that_recovers_is_said_to(tmp_path: Path) -> None:
    found = agent_of(tmp_path, outcomes([True] * 12 + [False] * 18))

    assert words.meaning(found).startswith(
        "None of the latest 18 runs failed, all of the 12 before; succeeds in 60 % of 30 runs"
    )
    [since] = failures_of(found)
    assert "since run 13" in since
    assert "fewer runs fail" in since


@pytest.mark.parametrize(
    "ends", [[False, True] * 20, [True] * 20, [False] * 30, [False] * 4 + [True] * 4]
)
def test_no_shift_where_chance_suffices(tmp_path: Path, ends: list[bool]) -> None:
    assert failures_of(agent_of(tmp_path, erring(ends))) == []


def test_runs_that_fail_at_random_have_no_shift(tmp_path: Path) -> None:
    chance = random.Random(3)
    agents = [
        agent_of(tmp_path, outcomes([chance.random() < 0.4 for _ in range(30)])) for _ in range(10)
    ]

    assert sum(agent.shift is not None for agent in agents) <= 1


def test_a_streak_without_a_shift_is_counted(tmp_path: Path) -> None:
    found = agent_of(tmp_path, outcomes([False, True] * 20 + [True] * 5))

    assert failures_of(found) == ["the latest 6 runs failed, one after another"]


def test_other_tasks_since_then_are_named(tmp_path: Path) -> None:
    parted = agent_of(tmp_path, erring(BREAKS, ["easy"] * 20 + ["hard"] * 20))
    mixed = agent_of(tmp_path, erring(BREAKS, ["easy", "hard"] * 20))

    assert failures_of(parted)[0].endswith("; other requests since then may be why")
    assert failures_of(mixed)[0] == SINCE


def test_more_of_the_hard_tasks_is_no_change_of_the_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`hard` fails in half of its runs all along, and becomes most of the work."""
    tasks = ["hard" if n % (5 if n < 60 else 1) == 0 else f"easy {n % 3}" for n in range(120)]
    ends = [task == "hard" and n // 5 % 2 == 0 for n, task in enumerate(tasks)]
    file = write_otlp(tmp_path / "spans.jsonl", erring(ends, tasks))
    done = call(capsys, "gate", "--no-change", file)

    assert "; other requests since then may be why" in " ".join(done.out.split())
    assert "1 failed" not in done.out
    [agent] = report(tmp_path, erring(ends, tasks)).agents
    assert not any("what was deployed" in step for step in next_steps(agent))


def test_no_gate_keeps_what_got_worse(tmp_path: Path) -> None:
    ends = [False] * 70 + [True, True, True, False] * 3
    steps = next_steps(agent_of(tmp_path, outcomes(ends)))

    assert steps[0].startswith("Inspect the runs since then, and what was deployed then")
    assert not any("Keep it so" in step for step in steps)
    assert any("Keep it so" in step for step in next_steps(agent_of(tmp_path, outcomes(ends[:70]))))


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
def test_no_page_says_that_nothing_changed_where_failures_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    file = write_otlp(tmp_path / "spans.jsonl", erring(BREAKS))
    page = " ".join(call(capsys, "report", file, "--format", form).out.split())

    assert "ailures alone changed, since run 21" in page
    assert "other signals no result: 40 of the 60 observations that a baseline takes" in page
    assert "✓ Behaviour" not in page


def test_no_page_says_both_that_failures_changed_and_that_they_did_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = [n % 10 == 0 if n < 100 else n % 3 == 0 for n in range(200)]
    file = write_otlp(tmp_path / "spans.jsonl", erring(ends))
    for command in ("report", "change"):
        page = call(capsys, command, file).out

        assert "failures alone" in page
        assert "no change" not in page


def test_the_chart_of_failures_stands_where_runs_fail(tmp_path: Path) -> None:
    fails, works = (report(tmp_path, erring(ends)) for ends in (BREAKS, [False] * 20))

    assert "failed over time ▕            ████████████▏  20 of 40 runs failed" in printed(fails)
    assert "failed over time" not in printed(works)
    page = report_file.render(fails)
    assert page.index("Failed runs over time") < page.index("Score over time")
    assert 'aria-label="Failed runs over time. 20 of 40 runs failed"' in page
    assert "Failed runs over time" not in report_file.render(works)


@pytest.mark.parametrize("command", [["change"], ["gate", "--no-change"]])
def test_change_and_its_gate_note_since_when_an_agent_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    file = write_otlp(tmp_path / "spans.jsonl", erring(BREAKS))
    done = call(capsys, *command, file)
    page = " ".join(done.out.split())

    assert "no result: 40 of the 60 observations that a baseline takes" in page
    assert f"failures alone: {ALL_FAIL}: {SINCE}" in page
    assert done.code == (1 if command[0] == "gate" else 0)


def test_the_latest_runs_are_those_of_which_the_end_is_known(tmp_path: Path) -> None:
    spans: list[RawSpan] = []
    for number in range(60):
        success = None if number % 3 else number < 30
        spans += run_spans(number + 1, "lookup", success=success)
    found = agent_of(tmp_path, spans)

    assert found.shift is not None
    assert found.shift.sentence == (
        "all of the latest 10 runs with a known outcome failed, none of the 10 before"
    )
    assert words.about_ends(found) == "10 of 20 runs with a known outcome failed"


def test_successes_that_are_no_longer_labelled_are_no_shift(tmp_path: Path) -> None:
    """One run in ten fails throughout; from run 101 on failures alone are reported."""
    ends = [n % 10 > 0 if n < 100 else (None if n % 10 else False) for n in range(200)]
    same = [x for n, end in enumerate(ends, 1) for x in run_spans(n, "lookup", success=end)]
    worse = [end if n < 140 or n % 2 else False for n, end in enumerate(ends)]
    spans = [x for n, end in enumerate(worse, 1) for x in run_spans(n, "lookup", success=end)]

    assert agent_of(tmp_path, same).shift is None
    assert agent_of(tmp_path, spans).shift is not None


def test_an_outage_that_is_over_is_named(tmp_path: Path) -> None:
    ends = [False] * 20 + [True] * 10 + [False] * 20

    [outage] = failures_of(agent_of(tmp_path, erring(ends)))
    assert outage == (
        "10 runs failed, one after another: from run 21, 2023-11-14 22:48 UTC, to run 30, "
        "2023-11-14 23:03 UTC"
    )


def test_a_few_failures_at_the_end_are_a_shift(tmp_path: Path) -> None:
    found = agent_of(tmp_path, erring([False] * 36 + [True] * 4))

    assert found.shift is not None
    assert (found.shift.run, found.shift.sentence) == (
        37,
        "all of the latest 4 runs ended in an error, none of the 36 before",
    )
    assert words.meaning(found).startswith("All of the latest 4 runs ended in an error")


def test_failures_without_an_error_are_counted_where_no_success_is_known(tmp_path: Path) -> None:
    spans = [
        x for n in range(1, 21) for x in run_spans(n, "a", success=False if n % 4 == 0 else None)
    ]

    assert "5 of 20 runs failed, no success is known" in words.meaning(agent_of(tmp_path, spans))
