from __future__ import annotations

from itertools import pairwise
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.engine import Engine
from otel_reliability.metrics.stability.tier import Tier, tier_of
from otel_reliability.metrics.success.verdict import Verdict
from otel_reliability.model.reading import NO_DATA, Reading
from otel_reliability.model.run import AgentKey, RunChange, RunEvent
from otel_reliability.report.view import ScorePoint
from otel_reliability.testing import KEY, run
from otel_reliability.ui.agent_list import (
    PER_PAGE,
    SORTS,
    VERDICTS,
    AgentLine,
    Penalty,
    TableChoice,
    bar_of,
    id_of,
    line_of,
    list_of,
    top_penalty,
    verdict_counts,
)

SCORES = [95.0, None, 72.0, 55.0, 12.0, 72.0]


def line(number: int, score: float | None, **facts: object) -> AgentLine:
    key = AgentKey("", f"service-{number % 2}", "prod", f"Agent {number}")
    usual = AgentLine(
        key=key,
        verdict=Verdict.UNDECIDED if score is None else Verdict[tier_of(score).name],
        grade=None if score is None else tier_of(score),
        success=NO_DATA,
        errors=NO_DATA,
        cost=NO_DATA,
        score=score,
        coverage=None if score is None else 100.0,
        note="" if score else "2 of the 5 runs that a score needs",
        runs=10 * number,
        penalty=Penalty(None, 0.0, ""),
        last_ns=number,
        history=(),
        changed=False,
    )
    return usual._replace(**facts)


LINES = [line(number, score) for number, score in enumerate(SCORES)]


def shown(lines: list[AgentLine], **choice: object) -> list[str]:
    return [one.key.agent for one in list_of(lines, TableChoice()._replace(**choice)).lines]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("verdict", "432501"),
        ("score", "432501"),
        ("best", "025341"),
        ("name", "012345"),
        ("runs", "543210"),
        ("last", "543210"),
    ],
)
def test_agents_are_sorted(sort: str, expected: str) -> None:
    assert shown(LINES[::-1], sort=sort) == [f"Agent {number}" for number in expected]


def test_the_largest_fall_comes_first() -> None:
    falls = [(ScorePoint(0, 80.0), ScorePoint(1, 80.0 + change)) for change in (5.0, -30.0, -10.0)]
    lines = [line(number, 80.0, history=points) for number, points in enumerate([*falls, ()])]

    assert shown(lines, sort="trend") == ["Agent 1", "Agent 2", "Agent 3", "Agent 0"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"text": "agent 3"}, ["Agent 3"]),
        ({"text": "PROD"}, [f"Agent {number}" for number in range(6)]),
        ({"service": "service-1"}, ["Agent 1", "Agent 3", "Agent 5"]),
        ({"verdict": "variable"}, ["Agent 2", "Agent 5"]),
        ({"verdict": "undecided"}, ["Agent 1"]),
        ({"verdict": "variable", "service": "service-0", "text": "2"}, ["Agent 2"]),
        ({"text": "nobody"}, []),
    ],
)
def test_agents_are_chosen(choice: dict[str, object], expected: list[str]) -> None:
    assert shown(LINES, sort="name", **choice) == expected


def test_pages_hold_all_agents_once() -> None:
    lines = [line(number, 50.0) for number in range(2 * PER_PAGE + 3)]
    pages = [list_of(lines, TableChoice(page=page)) for page in (1, 2, 3, 99)]

    assert [len(page.lines) for page in pages] == [PER_PAGE, PER_PAGE, 3, 3]
    assert {one.key for page in pages for one in page.lines} == {one.key for one in lines}
    assert pages[3].choice.page == pages[3].pages == 3


@given(
    st.builds(
        TableChoice,
        text=st.text(max_size=30).map(str.strip),
        service=st.text(max_size=30),
        verdict=st.sampled_from(["", *VERDICTS]),
        sort=st.sampled_from(sorted(SORTS)),
        page=st.integers(1, 99_999),
    )
)
def test_an_address_says_what_is_shown(choice: TableChoice) -> None:
    query = dict(parse_qsl(urlsplit(choice.address(page=choice.page)).query))

    if not any("\ud800" <= sign <= "\udfff" for sign in choice.text + choice.service):
        assert TableChoice.of(query) == choice


@given(st.dictionaries(st.sampled_from(["q", "service", "verdict", "sort", "page"]), st.text()))
def test_any_address_shows_something(query: dict[str, str]) -> None:
    choice = TableChoice.of(query)

    assert choice.verdict in {"", *VERDICTS}
    assert choice.sort in SORTS
    assert list_of(LINES, choice).found <= len(LINES)


@given(st.lists(st.none() | st.floats(0, 100), max_size=50))
def test_the_bar_of_grades_is_full(scores: list[float | None]) -> None:
    lines = [line(number, score) for number, score in enumerate(scores)]
    counts = verdict_counts(lines)
    bar = bar_of(lines)

    assert [one.verdict for one in counts] == list(VERDICTS)
    assert sum(one.agents for one in counts) == len(scores)
    assert sum(one.width for one in bar) == pytest.approx(100 if scores else 0, abs=0.1)
    assert all(
        later.start == pytest.approx(one.start + one.width, abs=0.02)
        for one, later in pairwise(bar)
    )


def test_stable_agent_that_fails_often_is_not_green_in_the_bar() -> None:
    """Its word is that of its score; its colour, there as in the table, that of its errors."""
    lines = [line(1, 95.0), line(2, 95.0, grade=Tier.UNSTABLE), line(3, None, grade=Tier.CRITICAL)]

    worse = {one.verdict: (one.agents, one.worse) for one in verdict_counts(lines) if one.agents}
    assert worse == {"stable": (2, 1), "undecided": (1, 1)}
    assert [one.colour for one in bar_of(lines)] == ["critical", "unstable", "stable"]


def test_agents_that_differ_in_anything_have_different_ids() -> None:
    keys = [
        AgentKey("a", "b", "c", "d"),
        AgentKey("b", "a", "c", "d"),
        AgentKey("a", "b", "c", "d", (("x", "1"),)),
        AgentKey("a", "b", "c", "d", (("x", "2"),)),
    ]

    assert len({id_of(key) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        (0.0, "No points lost."),
        (0.7, "No part lowers the score by a whole point."),
        (18.0, "The context window is 90 % full on average."),
    ],
)
def test_small_penalties_are_not_called_none(points: float, sentence: str) -> None:
    """A score of 97 has lost points, though no part of it cost one."""
    assert told(points) == sentence


def told(points: float, **beside: float | None) -> str:
    """What the table says of an agent whose context is 90 % full, which costs these points."""
    name = "token_budget_pressure"
    readings: dict[str, float | None] = {name: 0.9, "success_rate": None, "score": 80.0, **beside}
    none = ("error_rate", "failed_run_share", "failed_in_a_row", "failed_call_share")
    readings = {**dict.fromkeys(none, 0.0), **readings}
    asked = {each: Reading(value, 9, note="too little data") for each, value in readings.items()}
    return top_penalty(asked.__getitem__, {name: points}).sentence


def test_what_goes_wrong_beside_the_score_is_told_where_that_loses_nothing() -> None:
    assert told(0.7, error_rate=1.0) == "100 % of 9 runs ended in an error."
    assert told(0.7, failed_run_share=0.5) == "50 % of 9 runs failed."
    assert told(0.7, success_rate=0.5) == "50 % of 9 runs failed."
    assert told(0.7, failed_call_share=0.4) == "40 % of the tool calls failed."
    assert told(18.0, failed_in_a_row=12.0) == "Fails now: the latest 12 runs failed."
    assert told(0.7, failed_call_share=0.05) == "No part lowers the score by a whole point."


def test_what_goes_wrong_is_told_where_there_is_no_score() -> None:
    assert told(18.0, score=None) == "No score: too little data."
    assert told(18.0, score=None, error_rate=1.0) == "100 % of 9 runs ended in an error."
    now = "Fails now: the latest 12 runs failed."
    assert told(18.0, score=None, failed_in_a_row=12.0) == now


def test_perturbed_runs_are_not_among_the_runs_of_a_line() -> None:
    """The agent's page, its report and its gauge count them apart."""
    engine = Engine(wall=None)
    for number, condition in enumerate(("baseline", "fault", "baseline"), start=1):
        engine.receive_events(
            [RunEvent(RunChange.CLOSED, run(["a"], number, condition=condition), None)]
        )
    state = engine.read(lambda agents: agents.agent(KEY))

    assert state is not None
    assert line_of(state, ()).runs == 2
