"""Conversations whose turns name the response that they continue."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from otel_reliability.assembly import response_chains
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import Settings
from otel_reliability.model.flaws import RUN_REPLAYED
from otel_reliability.model.run import CloseReason, RunChange
from otel_reliability.model.span import (
    AgentSpan,
    Kind,
    ModelFacts,
    RawSpan,
    Session,
    Tokens,
)
from otel_reliability.testing import agent, agent_span, span
from tests.assembly.rebuilding import Watched, rebuilt
from tests.conventions.reading import runs


def turn(
    trace: int,
    *responses: str,
    after: str | None = None,
    session: Session | None = None,
) -> list[AgentSpan]:
    """A run whose model calls give these responses, each continuing the one before it."""
    start = 100.0 * trace
    spans = [agent(1, trace=trace, start=start, end=start + 50, session=session)]
    for number, response in enumerate(responses, 2):
        facts = ModelFacts(
            "gpt",
            tokens=Tokens(100 * trace + number, 5),
            response_id=response,
            previous_response=after,
        )
        at_s = start + number
        spans.append(
            agent_span(Kind.MODEL, facts, number, 1, session=session, trace=trace, start=at_s)
        )
        after = response
    return spans


TURNS = (turn(1, "a1", "a2"), turn(2, "b1", after="a2"), turn(3, "c1", "c2", after="b1"))


@pytest.mark.parametrize("order", list(permutations(TURNS)))
def test_turns_are_one_conversation_in_any_order(order: tuple[list[AgentSpan], ...]) -> None:
    found = rebuilt(*[one for spans in order for one in spans])

    assert [run.session_id for run in found] == ["a2", "a2", "a2"]


def test_the_conversation_of_an_earlier_turn_is_that_of_all() -> None:
    found = rebuilt(*turn(1, "a1", session=Session(0, "talk")), *turn(2, "b1", after="a1"))
    assert [run.session_id for run in found] == ["talk", "talk"]


def test_a_turn_whose_beginning_is_unknown_names_what_it_continues() -> None:
    found = rebuilt(*turn(1, "b1", after="a1"), *turn(2, "c1", after="a1"))
    assert [run.session_id for run in found] == ["a1", "a1"]


def test_turns_that_continue_nothing_are_no_conversations() -> None:
    found = rebuilt(*turn(1, "a1"), *turn(2, "b1"))
    assert [run.session_id for run in found] == [None, None]


def test_a_final_turn_is_revised_when_the_next_one_comes() -> None:
    watched = Watched()
    watched.add(*TURNS[0])
    changes = watched.wait(200)
    watched.add(*TURNS[1])
    changes += watched.wait(200)

    assert [(change.value, run.session_id, run.trace_id[-1]) for change, run in changes] == [
        ("closed", None, 1),
        ("final", None, 1),
        ("closed", "a2", 2),
        ("revised", "a2", 1),
        ("final", "a2", 2),
    ]


def test_another_conversation_that_late_spans_name_is_that_of_all() -> None:
    """The one that the earliest span names counts."""
    named, earlier = Session(0, "b"), Session(0, "a")
    first = turn(1, "a1", "a2")
    spans = [first[0], *(replace(one, session=named) for one in first[1:])]
    watched = Watched()
    watched.add(*spans, *TURNS[1])
    changes = watched.wait(5)
    watched.add(agent_span(Kind.TOOL, None, 9, 1, session=earlier, trace=1, start=101.0))
    changes += watched.wait(200)
    last = {run.trace_id[-1]: run.session_id for _, run in changes}

    assert [run.session_id for change, run in changes if change is RunChange.CLOSED] == ["b", "b"]
    assert last == {1: "a", 2: "a"}


def test_it_is_known_after_a_restart() -> None:
    watched = Watched()
    watched.add(*TURNS[0], *TURNS[1])
    final = [run for change, run in watched.wait(200) if change is RunChange.FINAL]
    assembler = Assembler(Settings())
    assembler.restore_final(final)
    assembler.add_all(TURNS[2], 0.0)
    events = assembler.close_all(CloseReason.SHUTDOWN, 0.0)

    assert {event.run.session_id for event in events} == {"a2"}


def test_attempts_at_a_turn_are_one_run_of_the_conversation() -> None:
    again = turn(4, "a1", "a2")
    first = turn(1, "a1", "a2")
    same = [
        agent_span(Kind.MODEL, one.facts, at, 1, trace=4, start=400.0 + at)
        for at, one in enumerate(first[1:], 2)
    ]
    found = rebuilt(*first, again[0], *same, *turn(5, "b1", after="a2"))

    assert [(run.session_id, run.flaws) for run in found] == [("a2", (RUN_REPLAYED,)), ("a2", ())]


def test_circles_end() -> None:
    found = rebuilt(*turn(1, "a1", after="b1"), *turn(2, "b1", after="a1"))
    assert len({run.session_id for run in found}) == 1


def test_turns_are_forgotten_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_chains, "MAX_TURNS", 2)
    chains = response_chains.ResponseChains(lambda _trace, _run: None)
    watched = Watched()
    for number in range(1, 9):
        watched.add(*turn(number, f"r{number}", after=f"r{number - 1}"))
    watched.wait(20)
    chains.pass_on(watched.events)

    assert len(chains._turns) <= 2
    assert len(chains._by_last) <= 2


def test_the_attribute_is_read() -> None:
    def call(number: int, response: str, previous: str | None) -> list[RawSpan]:
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt",
            "gen_ai.response.id": response,
            **({"gen_ai.request.previous_response.id": previous} if previous else {}),
        }
        root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
        start = 10.0 * number
        return [
            span(1, trace=number, attributes=root, start=start, end=start + 5),
            span(2, 1, trace=number, attributes=attributes, start=start + 1),
        ]

    found = runs(*call(1, "resp_1", None), *call(2, "resp_2", "resp_1"))
    assert [run.session_id for run in found] == ["resp_1", "resp_1"]


def test_the_id_of_a_response_is_no_conversation_but_what_a_turn_continues() -> None:
    """The Agent Framework writes the one before in the place of a conversation's id."""
    first = turn(1, "resp_1")
    second = turn(2, "resp_2", session=Session(0, "resp_1"))
    third = turn(3, "resp_3", session=Session(0, "resp_2"))

    found = rebuilt(*first, *second, *third)
    assert [run.session_id for run in found] == ["resp_1"] * 3


def test_ids_that_many_turns_have_cost_no_more_with_each() -> None:
    """A mock that answers with two ids in turns makes circles of all runs."""
    chains = response_chains.ResponseChains(lambda _trace, _run: None)
    watched = Watched()
    for number in range(1, 101):
        last, before = ("a", "b") if number % 2 else ("b", "a")
        watched.add(*turn(number, last, after=before))
    watched.wait(20)
    closed = [event for event in watched.events if event.change is RunChange.CLOSED]

    told = [len(chains.pass_on([event])) for event in closed]
    assert len(told) == 100
    assert max(told[-20:]) <= 1 + response_chains.MAX_FOLLOWING
    assert sum(told[-20:]) <= 20 * (1 + response_chains.MAX_ALIKE)
