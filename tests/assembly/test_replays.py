"""Runs that a durable engine executes again, and steps that are reported again under their id."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.model.flaws import RUN_REPLAYED
from otel_reliability.model.run import RunChange
from otel_reliability.model.span import AgentSpan, Kind, ModelFacts, Session, Tokens
from otel_reliability.testing import agent, agent_span, at, model, other, tool, workflow
from tests.assembly.rebuilding import Watched, accounts_of, names_of, rebuilt, run_of


def said(
    number: int, parent: int | None, response: str | None, tokens: int = 100, **place: Any
) -> AgentSpan:
    """A model call with the id of its response."""
    facts = ModelFacts("model-1", tokens=Tokens(tokens, 10), response_id=response)
    return agent_span(Kind.MODEL, facts, number, parent, **place)


def attempts(*, roots: bool) -> list[AgentSpan]:
    """A run in three attempts: the process went away after the first model call, and after the
    tool.
    """
    spans = [
        other(1, None, start=0, end=0.1),
        said(11, 10, "r1", start=1, end=2),
        said(21, 20, "r1", start=11, end=11.01),
        tool(22, 20, "search", call_id="c1", result=b"r", start=12, end=15),
        agent(30, 1, start=20, end=29),
        said(31, 30, "r1", start=20.1, end=20.11),
        tool(32, 30, "search", call_id="c1", result=b"r", start=20.2, end=20.21),
        said(33, 30, "r2", 200, start=21, end=28),
    ]
    if roots:
        spans += [
            agent(10, 1, start=0.5, end=2.5, failed=True),
            agent(20, 1, start=10, end=15.5, failed=True),
        ]
    return spans


@pytest.mark.parametrize("roots", [False, True])
def test_attempts_at_a_run_are_one_run_whose_steps_count_once(roots: bool) -> None:
    spans = attempts(roots=roots)
    run = run_of(*spans)

    assert run.path == ("search",)
    assert (run.input_tokens, run.output_tokens) == (300, 20)
    assert (run.outcome.value, run.ended_in_error) == ("completed", False)
    assert (run.start_ns, run.end_ns) == (at(0.5 if roots else 1), at(29))
    assert run.tool_calls is not None
    assert (run.tool_calls[0].start_ns, run.tool_calls[0].end_ns) == (at(12), at(15))
    assert run.flaws == (RUN_REPLAYED,)
    assert rebuilt(*spans) == rebuilt(*spans[::-1]) == [run]
    assert accounts_of(*spans)["used", ""] == len(spans) - 1


def test_a_replayed_model_call_without_a_response_id_is_known_by_its_tokens() -> None:
    first = [agent(1, end=5), said(2, 1, None), tool(3, 1, call_id="c1", start=2)]
    again = [
        agent(11, start=20, end=21),
        said(12, 11, None, start=20.1, end=20.2),
        tool(13, 11, call_id="c1", start=20.3, end=20.4),
    ]

    assert run_of(*first, *again).input_tokens == 100


def test_a_whole_replay_after_the_end_does_not_make_the_run_longer() -> None:
    first = [agent(1, end=5), said(2, 1, "r1"), tool(3, 1, call_id="c1", start=2)]
    again = [
        agent(11, start=900, end=901),
        said(12, 11, "r1", start=900.1, end=900.2),
        tool(13, 11, call_id="c1", start=900.3, end=900.4),
    ]
    run = run_of(*first, *again)

    assert (run.start_ns, run.end_ns, run.span_count) == (at(0), at(5), 6)
    assert (run.path, run.input_tokens) == (("tool",), 100)


def test_attempts_in_one_container_are_one_run() -> None:
    spans = [
        workflow(1, end=50),
        agent(2, 1, end=3),
        said(3, 2, "r1", start=1),
        agent(4, 1, start=10, end=20),
        said(5, 4, "r1", start=11),
        tool(6, 4, call_id="c1", start=12),
    ]

    assert names_of(*spans) == [("agent", False)]
    assert run_of(*spans).input_tokens == 100


def test_attempts_whose_root_never_came_are_one_implicit_run() -> None:
    spans = attempts(roots=False)[1:4]
    run = run_of(*spans)

    assert (run.implicit, run.incomplete, run.path) == (True, True, ("search",))
    assert run.input_tokens == 100
    assert accounts_of(*spans) == Counter({("used", ""): 2, ("duplicate", "replay"): 1})


def test_an_attempt_that_was_reported_is_withdrawn_when_the_next_one_comes() -> None:
    spans = attempts(roots=True)
    watched = Watched()
    watched.add(*spans[:2], spans[8])
    assert [change for change, _ in watched.wait(20)] == [RunChange.CLOSED]
    watched.add(*spans[2:8], spans[9])
    changes = watched.wait(20) + watched.end()

    assert [change.value for change, _ in changes] == ["withdrawn", "closed", "final"]
    assert changes[-1][1].input_tokens == 300


@pytest.mark.parametrize(
    "second",
    [
        # other ids
        [said(12, 11, "r9", start=21), tool(13, 11, call_id="c9", start=22)],
        # one of the steps is new in each: neither is a part of the other
        [said(12, 11, "r1", start=21), tool(13, 11, call_id="c9", start=22)],
        # nothing identifies the steps
        [said(12, 11, None, start=21), tool(13, 11, start=22)],
        # tokens identify no call by themselves
        [said(12, 11, None, start=21)],
    ],
)
def test_another_run_is_no_attempt(second: list[AgentSpan]) -> None:
    first = [agent(1, end=5), said(2, 1, "r1"), tool(3, 1, call_id="c1", start=2)]

    assert len(rebuilt(*first, agent(11, start=20, end=30), *second)) == 2


@pytest.mark.parametrize(
    "root",
    [
        agent(11, called="other", start=20, end=30),
        agent(11, start=20, end=30, session=Session(0, "second")),
    ],
)
def test_equal_ids_of_other_agents_and_conversations_are_other_calls(root: AgentSpan) -> None:
    first = [agent(1, end=5, session=Session(0, "first")), said(2, 1, "r1")]

    assert len(rebuilt(*first, root, said(12, 11, "r1", start=21))) == 2


# --- Within one run -------------------------------------------------------------------------------


def test_a_response_that_is_reported_twice_is_one_model_call() -> None:
    begun = agent_span(Kind.MODEL, ModelFacts("m", response_id="r1"), 2, 1, start=1)
    run = run_of(agent(1, end=9), begun, said(3, 1, "r1", start=5))

    assert (len(run.model_calls), run.input_tokens) == (1, 100)


def test_equal_response_ids_with_other_tokens_are_two_calls() -> None:
    run = run_of(agent(1, end=9), said(2, 1, "r1", 100, start=1), said(3, 1, "r1", 150, start=5))

    assert (len(run.model_calls), run.input_tokens) == (2, 250)


@pytest.mark.parametrize(
    ("between", "second", "calls"),
    [
        ((), {}, 1),
        # the model may have asked again under a number of its own
        ((model(5, 1, start=3),), {}, 2),
        # an attempt that failed was executed
        ((), {"failed": True}, 2),
        ((), {"arguments": b"other"}, 2),
        ((), {"call_id": "c2"}, 2),
        ((), {"called": "read"}, 2),
    ],
)
def test_a_call_that_succeeded_and_is_reported_again_counts_once(
    between: tuple[AgentSpan, ...], second: dict[str, Any], calls: int
) -> None:
    first = tool(2, 1, "search", call_id="c1", start=1, end=2)
    facts: dict[str, Any] = {"called": "search", "call_id": "c1", "start": 4, "end": 5}
    again = tool(3, 1, **facts | second)
    run = run_of(agent(1, end=9), first, again, *between)

    assert len(run.path or ()) == calls


def test_a_failed_attempt_of_a_call_and_the_next_are_a_retry() -> None:
    failed = tool(2, 1, call_id="c1", start=1, end=2, failed=True)
    run = run_of(agent(1, end=9), failed, tool(3, 1, call_id="c1", start=4, end=5))

    assert [call.retry for call in run.tool_calls or ()] == [False, True]


def test_a_call_that_was_made_in_a_replayed_one_lies_in_the_first() -> None:
    outer = tool(2, 1, "outer", call_id="c1", start=1, end=3)
    replayed = tool(3, 1, "outer", call_id="c1", start=4, end=5)
    inner = replace(tool(4, 3, "inner", start=4.1, end=4.2))

    assert run_of(agent(1, end=9), outer, replayed, inner).path == ("outer", "inner")
