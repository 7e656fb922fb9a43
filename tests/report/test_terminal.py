from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from otel_reliability.config import MetricSettings, OutcomeSettings, Settings
from otel_reliability.model.span import RawSpan, Resource
from otel_reliability.recording import Recording, for_report
from otel_reliability.report import terminal
from otel_reliability.report.build import report_of
from otel_reliability.testing import span
from tests.report.build import attempts, chat, printed, report, runs, with_min_runs
from tests.report.test_json import FULL
from tests.report.test_taubench import AIRLINE
from tests.shared import shared


def page(
    tmp_path: Path, spans: list[RawSpan], settings: Settings | None = None, width: int = 80
) -> str:
    return printed(report(tmp_path, spans, for_report(settings or with_min_runs(2))), width)


def test_the_score_stands_first_with_what_it_means(tmp_path: Path) -> None:
    lines = page(tmp_path, runs("a", "a", "a")).splitlines()

    assert lines[0].startswith("support ─")
    assert lines[0].endswith(" shop · test")
    assert lines[2].strip() == (
        "🟢 STABLE 100/100  Takes the same path every time; success unknown, none of 3"
    )
    assert lines[3].strip() == "runs ended in an error."
    assert "3 runs are too few to bound the score, from 60 of 100 points assessed" in [
        line.strip() for line in lines
    ]


def test_the_line_of_an_agent_without_a_service_fills_the_terminal(tmp_path: Path) -> None:
    """Coding agents name no service in their log events."""
    spans = [replace(each, resource=Resource("", "", "", "", "", {})) for each in runs("a", "a")]

    assert page(tmp_path, spans, width=60).splitlines()[0] == f"support {'─' * 52}"


def test_without_a_score_it_says_what_is_missing(tmp_path: Path) -> None:
    assert "No score: 1 of the 2 runs that a score needs; success unknown" in page(
        tmp_path, runs("a")
    )


def test_what_costs_most_is_told_first_and_why(tmp_path: Path) -> None:
    spans = [
        *runs("fetch fetch fetch fetch", failed="fetch"),
        *runs(*["read"] * 8, "read wipe", first=2),
    ]
    seen = page(tmp_path, spans)

    assert seen.index("Retry explosion  −41.7") < seen.index("Tool variance  −")
    assert "1 of 10 runs kept retrying a failing call, up to 3 times; one such run takes" in seen
    assert "00000000000000000000000000000001  fetch retried 3×, 1.5 s" in seen
    assert "wipe: 10 %, 1 of 10 runs" in seen


def test_a_full_context_is_called_unstable_and_changes_no_tier(tmp_path: Path) -> None:
    calls = [chat(run, 95, reliability__context_limit=100) for run in (1, 2, 3)]
    seen = page(tmp_path, [*runs("a", "a", "a"), *calls])

    assert "🟡 VARIABLE 76/100" in seen
    assert "⚠ UNSTABLE by token pressure: the context window is 95 % full on average" in seen
    assert "00000000000000000000000000000001  95 %" in seen


def test_ends_without_error_are_no_pass_rate(tmp_path: Path) -> None:
    """Where only failures can be known, no share of successes is claimed."""
    seen = page(tmp_path, [*runs("a", "a"), *runs("b", first=3, success=False)])

    assert "1 failed; 2 ended without an error, which is no success yet" in seen
    assert "succeeded" not in seen
    assert "pass^k, all" not in seen


def test_outcomes_that_rest_on_status_are_said_to(tmp_path: Path) -> None:
    settings = Settings(
        outcome=OutcomeSettings(fallback="status"), metrics=MetricSettings(min_runs=2)
    )
    seen = " ".join(
        page(tmp_path, [*runs("a", "a"), *runs("b", first=3, success=False)], settings).split()
    )

    assert "2 of 3 runs succeeded, 67 %" in seen
    assert (
        "2 of 2 successes rest on no more than an end without error (outcome.fallback: status)"
        in seen
    )


def test_pass_rates_stand_by_k(tmp_path: Path) -> None:
    seen = page(tmp_path, [*attempts("a", True, False), *attempts("b", True, True, first=3)])

    assert re.search(r"Repeated attempts +k = 1  k = 2  runs", seen)
    assert re.search(r"pass\^k, all of k pass +75 % +50 % +4", seen)


def test_sections_show_only_where_there_is_evidence(tmp_path: Path) -> None:
    seen = page(tmp_path, runs("a", "a"))

    assert not any(
        title in seen for title in ("Evaluation", "Repeated attempts", "Tasks", "Sessions", "Why")
    )


def test_evidence_that_would_tell_more_stands_once_for_all_agents(tmp_path: Path) -> None:
    seen = page(tmp_path, [*runs("a", "a"), *runs("a", "a", first=3, agent="other", task="t")])

    assert seen.count("annotate(confidence=0.8) sets reliability.run.confidence") == 1
    assert "confidence (0 of 4 runs): calibration, discrimination, Brier score" in seen
    assert "task ids (0 of 2 runs of support): branches" in seen


def test_tasks_stand_by_how_much_their_attempts_disagree(tmp_path: Path) -> None:
    same = runs("look pay", "look pay", task="alike")
    part = runs("look pay", "look mail", "look mail", "look", first=3, task="parting")
    seen = page(tmp_path, [*same, *part])
    lines = [
        line.split() for line in seen[seen.index("Tasks to inspect first") :].splitlines()[1:4]
    ]

    assert lines[0][:5] == ["parting", "–", "4", "3", "83"]
    assert "mail by 2 of 4; pay by 1 of 4" in " ".join(" ".join(line) for line in lines)
    assert re.search(r"alike +– +2 +1 +0 % +none", seen)


def test_readings_have_intervals(tmp_path: Path) -> None:
    seen = page(tmp_path, runs(*["a b", "b a", "a"] * 4))

    assert re.search(
        r"^ +tool_call_variation +0\.\d{3} +0\.\d\d–0\.\d\d +12 *$", seen, re.MULTILINE
    )
    assert max(cell_len(line) for line in seen.splitlines()) <= 80


def test_many_agents_have_a_line_each_the_worst_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "MAX_DETAILED", 1)
    spans = [
        *runs("a", "a", agent="calm"),
        *runs("a", "b", first=3, agent="wild"),
        *runs("a", first=5, agent="new"),
    ]
    seen = page(tmp_path, spans)
    order = [line.split()[0] for line in seen.splitlines()[1:4]]

    assert order == ["wild", "calm", "new"]
    assert [line.split()[0] for line in seen.splitlines() if "─────" in line] == ["wild"]
    assert "2 more agents; --agent NAME shows one in full" in seen


def test_no_agents_is_said(tmp_path: Path) -> None:
    assert "No agent runs: there are no spans." in page(tmp_path, [])
    seen = page(tmp_path, [span(1, attributes={"http.method": "GET"})], width=200)
    assert "No agent runs: none of the spans comes from a known agent framework." in seen
    assert "1 span received: 1 other." in seen


def test_names_from_telemetry_cannot_command_the_terminal(tmp_path: Path) -> None:
    spans = runs("\x1b[2Jwipe", "[red]x[/red]", task="[bold]\x07", agent="\x1b]0;title\x07[link=x]")
    seen = page(tmp_path, spans)

    assert "\x1b" not in seen
    assert "\x07" not in seen
    assert "·]0;title·[link=x]" in seen


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_longer_than_the_terminal(tmp_path: Path, width: int) -> None:
    assert max(map(cell_len, page(tmp_path, FULL, width=width).splitlines())) <= width


def test_the_report_of_real_runs_names_what_matters() -> None:
    recording = Recording()
    recording.read(shared(f"corpora/taubench/{AIRLINE}.otlp.jsonl.gz"))
    seen = printed(report_of(recording.close()))

    assert "🔴 CRITICAL 23/100" in seen
    assert "5f35601083fc1096a1c24d4bf8676dea  book_reservation retried 3×" in seen
    assert re.search(r"pass\^k, all of k pass +42 % +27 % +22 % +20 % +200", seen)
    assert max(map(cell_len, seen.splitlines())) <= 80
