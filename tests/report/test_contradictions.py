"""Sentences of one page that must agree with one another, and with the facts."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.change.detector import BLIND
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import agent_of, attempts, chat, printed, report, runs

HOUSE: Any = {"gen_ai__request__model": "house-1"}


def test_no_page_calls_an_agent_predictable_above_its_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = [*runs(*["look reply"] * 80), *runs(*["look reply ask"] * 80, first=81)]
    path = write_otlp(tmp_path / "changed.jsonl", spans)
    for form in ("terminal", "markdown", "html"):
        page = call(capsys, "report", path, "--no-intervals", "--format", form).out

        assert "changed about observation 8" in page
        assert "consistent and predictable" not in page


def test_prices_are_advised_only_where_they_are_not_installed(tmp_path: Path) -> None:
    [gap] = [
        gap
        for gap in agent_of(tmp_path, [*runs("a"), chat(1, 900, **HOUSE)]).missing
        if gap.missing == "context limits"
    ]

    assert ("otel-reliability[prices]" in gap.remedy) == (find_spec("genai_prices") is None)


def test_dollars_stand_beside_the_date_of_their_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("genai_prices", reason="the prices extra is not installed")
    usage: Any = {
        "gen_ai__request__model": "gpt-4o",
        "gen_ai__usage__output_tokens": 100_000,
    }
    spans = [*runs(*["a"] * 6), *(chat(number + 1, 1_000_000, **usage) for number in range(6))]
    path = write_otlp(tmp_path / "priced.jsonl", spans)
    for form in ("terminal", "markdown", "html"):
        page = " ".join(
            call(capsys, "report", path, "--no-intervals", "--format", form).out.split()
        )

        assert "$3.50 a run" in page
        assert "genai-prices" in page

    agent = agent_of(tmp_path, spans)
    assert agent.metrics["cost_per_run"].value == pytest.approx(3.5)
    assert agent.price_table.startswith("genai-prices ")
    assert agent_of(tmp_path, [*runs("a"), chat(1, 900, **HOUSE)]).price_table == ""


def test_a_model_without_a_price_is_named(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices", reason="the prices extra is not installed")
    agent = agent_of(tmp_path, [*runs("a"), chat(1, 900, **HOUSE)])

    [gap] = [gap for gap in agent.missing if gap.missing == "costs"]
    assert gap.remedy == "no list price of house-1: annotate(cost=0.02)"
    assert (gap.runs, gap.of) == (1, 1)


def test_only_the_limit_is_called_unknown_where_tokens_are_known(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, [*runs("a", "a"), chat(1, 900, **HOUSE), chat(2, 900, **HOUSE)])

    assert "tokens" not in [gap.missing for gap in agent.missing]
    assert any("--set 'context_limits=house-1=128000'" in gap.remedy for gap in agent.missing)
    assert agent.metrics["token_budget_pressure"].note == "no context limit is known for house-1"
    assert agent_of(tmp_path, runs("a", "a")).metrics["token_budget_pressure"].note == ""


def test_every_page_names_one_length_of_the_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command's help, the explanation, the result and its small print: 60, and
    no other number.
    """
    path = write_otlp(tmp_path / "spans.jsonl", runs(*["a"] * 30))
    pages = [
        call(capsys, *command).out
        for command in (("change", "--help"), ("explain", "change"), ("change", path))
    ]

    for page in pages:
        assert str(BLIND) in page
        assert not re.search(r"\b40\b", page)


def test_an_interval_that_bounds_nothing_is_not_shown_as_one(tmp_path: Path) -> None:
    spans = [
        *runs("a", "b c", "c d e e", "d", "f f f f", failed="f"),
        *runs("a b", first=6, failed="a"),
    ]
    agent = agent_of(tmp_path, spans)
    page = printed(report(tmp_path, spans))
    score = agent.metrics["score"]

    assert score.low is not None
    assert score.high is not None
    assert score.high - score.low > 80
    assert "6 runs are too few to bound the score" in page
    assert "between 0 and" not in page


def test_full_coverage_is_not_mentioned(tmp_path: Path) -> None:
    full = [
        *attempts("t", True, True),
        *(chat(run, 900, reliability__context_limit=9_000) for run in (1, 2)),
    ]
    assert agent_of(tmp_path, full).score_coverage == 100
    assert "assessed" not in printed(report(tmp_path, full))


@pytest.mark.parametrize(
    "form", ["terminal", "markdown", "html", "json", "junit", "badge", "badge-svg", "badge-json"]
)
def test_every_format_has_the_coverage_next_to_the_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", runs("a", "a", "a"))
    page = call(capsys, "report", path, "--format", form).out

    assert (
        '"score_coverage": 60.0' in page
        if form == "json"
        else "from 60 of 100 points assessed" in page
    )
