from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.assembly import steps
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.model.run import Run, ToolCall, Tools
from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_INTERNAL,
    KIND_SERVER,
    PAUSED,
    AgentSpan,
    Call,
    InvocationFacts,
    Kind,
    ModelFacts,
    ToolFacts,
)
from otel_reliability.testing import agent, agent_span, handoff, model, other, tool, workflow
from tests.assembly.rebuilding import run_of

Named = tuple[str, str | None]
AS_STARTED = Settings(assembly=AssemblySettings(parallel="as_started"))


def path_of(*spans: AgentSpan, settings: Settings | None = None) -> tuple[str, ...] | None:
    """The path of an agent that took these steps."""
    return run_of(agent(1, end=99), *spans, settings=settings or Settings()).path


def calls_of(run: Run) -> list[tuple[str, bool]]:
    """The calls of a run in the order of the clock, and whether each went well."""
    return [(call.name, call.ok) for call in run.tool_calls or ()]


def only_call(run: Run) -> ToolCall:
    assert run.tool_calls is not None
    assert len(run.tool_calls) == 1
    return run.tool_calls[0]


@pytest.mark.parametrize(
    ("attempts", "is_fine"),
    [
        ([(1, 3, True), (4, 6, False)], True),
        ([(1, 3, False), (4, 6, True)], False),
        ([(1, 3, True)], False),
        # a client's span and that of the server below it: one attempt
        ([(1, 6, False), (2, 5, True)], False),
        ([(1, 6, True), (1, 6, False)], False),
        ([(2, 2, True), (2, 2, False)], False),
    ],
)
def test_of_attempts_within_a_call_the_last_tells_whether_it_failed(
    attempts: list[tuple[int, int, bool]], is_fine: bool
) -> None:
    inside = [
        tool(3 + n, 2, "search", start=start, end=end, failed=failed)
        for n, (start, end, failed) in enumerate(attempts)
    ]
    run = run_of(agent(1, end=9), tool(2, 1, "search", start=0, end=7), *inside)
    assert calls_of(run) == [("search", is_fine)]


def reported(number: int, scope: str, start: float, end: float, **told: Any) -> AgentSpan:
    name = told.pop("name", "search")
    return replace(tool(number, 1, name, start=start, end=end, **told), scope=scope)


@pytest.mark.parametrize(
    ("spans", "path"),
    [
        ([reported(2, "a", 1, 5, call_id="c"), reported(3, "b", 2, 4)], ("search",)),
        ([reported(2, "a", 1, 5, failed=True), reported(3, "b", 1, 5)], ("search",)),
        # of one scope; one after the other; with other ids, other names
        ([reported(2, "a", 1, 5), reported(3, "a", 2, 4)], ("search",) * 2),
        ([reported(2, "a", 1, 5), reported(3, "b", 4, 6)], ("search",) * 2),
        (
            [reported(2, "a", 1, 5, call_id="c"), reported(3, "b", 2, 4, call_id="d")],
            ("search",) * 2,
        ),
        ([reported(2, "a", 1, 5), reported(3, "b", 2, 4, name="read")], ("search", "read")),
        # two calls at once, each reported by both
        (
            [
                *(reported(2, "a", 1, 5), reported(3, "a", 1.1, 5.1)),
                *(reported(4, "b", 1.2, 4.8), reported(5, "b", 1.3, 4.9)),
            ],
            ("search",) * 2,
        ),
    ],
)
def test_a_call_that_two_scopes_report_side_by_side_is_one(
    spans: list[AgentSpan], path: tuple[str, ...]
) -> None:
    run = run_of(agent(1, end=9), *spans)
    assert sorted(run.path or ()) == sorted(path)


# --- Calls whose spans were lost ------------------------------------------------------------------


def asked_for(*called: str, end: float = 1) -> AgentSpan:
    """A model call that asks for these tools, their ids being their names."""
    calls = tuple(Call(name, name, b"arguments") for name in called)
    facts = ModelFacts(asked_for_tools=True, messages=True, calls=calls)
    return agent_span(Kind.MODEL, facts, 2, 1, end=end)


SEEN = tool(3, 1, "b", call_id="b", start=2)
ANSWER = model(4, 1, start=5)


@pytest.mark.parametrize(
    ("spans", "path"),
    [
        ((asked_for("a", "b", "c"), SEEN, ANSWER), ("a", "b", "c")),
        ((asked_for("b"), SEEN, ANSWER), ("b",)),
        # the last words of a model may ask for what is no tool: a final answer
        ((asked_for("a", "b", end=6), SEEN, ANSWER), ("b",)),
        # spans without ids are known by their names
        ((asked_for("a", "b"), tool(3, 1, "a", start=2), ANSWER), ("a", "b")),
        ((asked_for("a", "b"), tool(3, 1, "call a", start=2), ANSWER), ("call a",)),
        # fewer spans than calls that were asked for, and none of another name
        ((asked_for("a"), model(5, 1, start=1.5), SEEN, ANSWER), ("a", "b")),
        # spans have names of their own: two for two calls
        (
            (asked_for("a", "b"), tool(3, 1, "b", start=2), tool(5, 1, "call a", start=2), ANSWER),
            ("b", "call a"),
        ),
        # none of them has a span: the framework answered it
        ((asked_for("a"), SEEN, ANSWER), ("b",)),
        # the other call was a hand-off
        ((asked_for("a", "b"), SEEN, handoff(5, 1, "other", start=3), ANSWER), ("b", "→other")),
    ],
)
def test_a_call_beside_others_whose_span_was_lost_is_in_the_path(
    spans: tuple[AgentSpan, ...], path: tuple[str, ...]
) -> None:
    assert path_of(*spans) == path


def silently_asked(number: int, start: float) -> AgentSpan:
    """A model call that asked for tools, whose messages were not captured."""
    facts = ModelFacts(asked_for_tools=True)
    return agent_span(Kind.MODEL, facts, number, 1, start=start, end=start + 1)


@pytest.mark.parametrize(
    ("between", "path"),
    [
        (tool(9, 1, "b", start=7), ("b", "b")),
        (agent(9, 1, called="writer", start=7), ("b",)),
        (other(9, 1, start=7), None),
    ],
)
def test_a_model_that_is_called_again_without_the_call_it_asked_for_lost_its_span(
    between: AgentSpan, path: tuple[str, ...] | None
) -> None:
    spans = [silently_asked(2, 0), SEEN, silently_asked(4, 5), between, model(5, 1, start=9)]

    assert path_of(*spans) == path


def test_a_path_with_lost_calls_says_that_messages_told_them() -> None:
    run = run_of(agent(1, end=99), asked_for("a", "b"), SEEN, ANSWER)

    assert run.tools is Tools.MESSAGES
    assert sorted(calls_of(run)) == [("a", True), ("b", True)]


def asks_at_its_end(*, emits_tools: bool, start: float = 0, at: int = 2) -> AgentSpan:
    facts = ModelFacts(
        asked_for_tools=True, messages=True, calls=(Call("pay", f"c{at}"),), emits_tools=emits_tools
    )
    return agent_span(Kind.MODEL, facts, at, 1, start=start, end=start + 1)


@pytest.mark.parametrize(
    ("spans", "path"),
    [
        # every executed call has a span: this one waits for an approval
        ((asks_at_its_end(emits_tools=True),), ()),
        ((asks_at_its_end(emits_tools=False),), ("pay",)),
        # the model went on, so it was executed, and its span is lost
        ((asks_at_its_end(emits_tools=True), model(4, 1, start=5)), ("pay",)),
        # of an earlier call the span is lost too
        (
            (
                asks_at_its_end(emits_tools=True),
                asks_at_its_end(emits_tools=True, start=5, at=3),
            ),
            ("pay", "pay"),
        ),
    ],
)
def test_a_call_that_waits_is_none_that_was_made(
    spans: tuple[AgentSpan, ...], path: tuple[str, ...]
) -> None:
    assert path_of(*spans) == path


def test_a_run_that_says_that_it_waits_has_not_made_the_calls_asked_for_last() -> None:
    """Whether its framework makes spans of calls or not."""
    waits = agent_span(
        Kind.AGENT, InvocationFacts("support", stopped=PAUSED), 1, None, start=0, end=99
    )
    first = asks_at_its_end(emits_tools=False)
    last = asks_at_its_end(emits_tools=False, start=5, at=3)
    assert run_of(waits, first).path == ()
    assert run_of(waits, first, last).path == ("pay",)


# --- Order and parallel calls ---------------------------------------------------------------------


def test_steps_are_in_the_order_of_start_end_and_span_id() -> None:
    steps = [tool(2, 1, "c", start=3), tool(3, 1, "a", start=1), tool(4, 1, "b", start=2)]

    assert {path_of(*order) for order in itertools.permutations(steps)} == {("a", "b", "c")}


def test_calls_issued_together_are_in_the_order_of_their_names() -> None:
    """Which of them starts first is a race, so the path does not tell; the clock's order can be
    had.
    """
    steps = [tool(2, 1, "z", start=1, end=3), tool(3, 1, "a", start=2, end=4)]

    assert path_of(*steps) == ("a", "z")
    assert path_of(*steps, settings=AS_STARTED) == ("z", "a")


def test_a_group_ends_with_its_earliest_end() -> None:
    """What starts after one of the group has ended was not issued with it, though another still
    runs.
    """
    steps = [
        tool(2, 1, "z", start=1, end=9),
        tool(3, 1, "y", start=1.5, end=2),
        tool(4, 1, "a", start=3, end=4),
    ]

    assert path_of(*steps) == ("y", "z", "a")


def test_calls_of_one_instant_belong_together() -> None:
    """Calls without length overlap nothing, but these started at the same instant as the last of
    the group.
    """
    assert path_of(tool(2, 1, "z", start=1, end=1), tool(3, 1, "a", start=1, end=1)) == ("a", "z")
    assert path_of(tool(2, 1, "z", start=1, end=1), tool(3, 1, "a", start=1.1, end=1.1)) == (
        "z",
        "a",
    )


def test_a_model_call_between_parts_them() -> None:
    """The agent thought in between, so the second was not issued with the first, though the first
    still ran.
    """
    steps = [tool(2, 1, "z", start=1, end=5), tool(4, 1, "a", start=3, end=4)]

    assert path_of(*steps) == ("a", "z")
    assert path_of(*steps, model(3, 1, start=2, end=2.5)) == ("z", "a")


def test_another_invocations_model_call_does_not() -> None:
    steps = [tool(2, 1, "z", start=1, end=5), tool(4, 1, "a", start=3, end=4)]

    assert path_of(*steps, agent(5, 1, None, start=2, end=3), model(6, 5, start=2, end=2.5)) == (
        "a",
        "z",
    )


def test_calls_of_two_agents_are_never_one_group() -> None:
    """Two agents at work at once: each one's calls keep their order, merged by where a group
    begins.
    """
    spans = [
        workflow(1, end=9),
        agent(2, 1, "one", end=9),
        agent(3, 1, "two", end=9),
        tool(4, 2, "z", start=1, end=4),
        tool(5, 3, "a", start=2, end=3),
    ]

    assert run_of(*spans).path == ("z", "a")


def test_a_hand_off_joins_no_group() -> None:
    steps = [
        tool(2, 1, "z", start=1, end=5),
        handoff(3, 1, "b", start=2),
        tool(4, 1, "a", start=3, end=4),
    ]

    assert path_of(*steps) == ("z", "→b", "a")


def test_what_was_called_inside_a_call_follows_it() -> None:
    steps = [
        tool(2, 1, "outer", start=1, end=9),
        tool(3, 2, "inner", start=2, end=3),
        tool(4, 1, "next", start=10, end=11),
        tool(5, 3, "deep", start=2.2, end=2.5),
    ]

    assert path_of(*steps) == ("outer", "inner", "deep", "next")


def test_groups_are_of_one_enclosing_call() -> None:
    steps = [
        tool(2, 1, "one", start=1, end=9),
        tool(3, 1, "two", start=1, end=9),
        tool(4, 2, "z", start=2, end=5),
        tool(5, 3, "a", start=3, end=4),
    ]

    assert path_of(*steps) == ("one", "z", "two", "a")


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 4)),
        min_size=1,
        max_size=8,
    )
)
def test_a_path_has_each_call_once(calls: list[tuple[str, int, int]]) -> None:
    steps = [
        tool(n, 1, name, start=start, end=start + length)
        for n, (name, start, length) in enumerate(calls, 2)
    ]
    run = run_of(agent(1, end=99), *steps)

    assert sorted(run.path or ()) == sorted(name for name, _, _ in calls)
    assert [call.start_ns for call in run.tool_calls or ()] == sorted(
        step.start_ns for step in steps
    )


@given(st.data())
def test_names_alone_order_calls_that_were_issued_together(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6))
    starts = data.draw(st.lists(st.integers(0, 9), min_size=len(names), max_size=len(names)))
    steps = [
        tool(n, 1, name, start=start, end=20 + start)
        for n, (name, start) in enumerate(zip(names, starts, strict=True), 2)
    ]

    assert path_of(*steps) == tuple(sorted(names))


# --- One call told twice --------------------------------------------------------------------------


def test_a_tool_span_in_one_of_its_name_is_the_same_call() -> None:
    """Two instrumentations tell it, one within the other; it failed if either says so."""
    run = run_of(
        agent(1, end=9),
        tool(2, 1, "search", end=5),
        tool(3, 2, "search", start=1, failed=True, end=4),
    )

    assert calls_of(run) == [("search", False)]


@pytest.mark.parametrize(
    ("outer", "inner", "kind", "path"),
    [
        ("weather_search", "search", KIND_CLIENT, ("weather_search",)),
        ("mcp__weather__search", "search", KIND_SERVER, ("mcp__weather__search",)),
        ("weather_search", "search", KIND_INTERNAL, ("weather_search", "search")),
        ("research", "search", KIND_CLIENT, ("research", "search")),
    ],
)
def test_a_server_may_know_a_tool_without_the_prefix_that_its_agent_gives_it(
    outer: str, inner: str, kind: int, path: tuple[str, ...]
) -> None:
    request = tool(3, 2, inner, start=1, end=4, span_kind=kind)
    assert path_of(tool(2, 1, outer, end=5), request) == path


def test_it_takes_what_either_knows() -> None:
    run = run_of(
        agent(1, end=9),
        tool(2, 1, "search", arguments=None, result=b"outer", end=5),
        tool(3, 2, "search", arguments=b"inner", result=b"inner", call_id="7", start=1, end=4),
    )
    call = only_call(run)

    assert (call.arguments, call.result) == (b"inner", b"outer")


@pytest.mark.parametrize(
    ("outer", "inner", "number"),
    [
        pytest.param(("search", None), ("book", None), 2, id="another name"),
        pytest.param(("search", "1"), ("search", "2"), 2, id="another call id"),
        pytest.param(("search", "1"), ("search", None), 1, id="one knows its id"),
        pytest.param(("search", "1"), ("search", "1"), 1, id="the same id"),
    ],
)
def test_a_call_within_a_call(outer: Named, inner: Named, number: int) -> None:
    (name, call_id), (inner_name, inner_id) = outer, inner
    run = run_of(
        agent(1, end=9),
        tool(2, 1, name, call_id=call_id, end=5),
        tool(3, 2, inner_name, call_id=inner_id, start=1, end=4),
    )

    assert len(run.tool_calls or ()) == number


def test_a_chain_of_four_spans_is_one_call() -> None:
    run = run_of(
        agent(1, end=9),
        *(tool(n, n - 1, "search", start=n / 10, end=5 - n / 10) for n in range(2, 6)),
    )

    assert calls_of(run) == [("search", True)]


@pytest.mark.parametrize(
    "between", [agent(3, 2, "inner", start=1, end=4), model(3, 2, start=1, end=4)]
)
def test_with_an_agent_or_a_model_call_between_it_is_another(between: AgentSpan) -> None:
    """An agent that was called by a tool may call that tool itself."""
    run = run_of(
        agent(1, end=9), tool(2, 1, "search", end=5), between, tool(4, 3, "search", start=2, end=3)
    )

    assert calls_of(run) == [("search", True), ("search", True)]


def test_many_calls_of_one_id_are_compared_with_the_latest_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All pairs of a run of 10,000 spans would take half a minute."""
    compared = 0
    overlap = steps._overlap

    def counted(first: Any, second: Any) -> bool:
        nonlocal compared
        compared += 1
        return overlap(first, second)

    monkeypatch.setattr(steps, "_overlap", counted)
    number = 1_000
    calls = [
        tool(at, 1, "search", arguments=b"%d" % at, call_id="0", start=at, end=at + 1)
        for at in range(2, number)
    ]

    run = run_of(agent(1, end=number + 1), *calls)

    assert len(run.tool_calls or ()) == len(calls)
    assert compared <= number * steps.MAX_OF_ID


def test_two_that_overlap_under_one_call_id_are_one() -> None:
    """Side by side, told by two instrumentations; the failure and the first start
    are the call's.
    """
    run = run_of(
        agent(1, end=9),
        tool(2, 1, "search", call_id="7", start=1, end=3),
        tool(3, 1, "search", call_id="7", start=1.5, end=2.5, failed=True),
    )
    call = only_call(run)

    assert (call.ok, call.end_ns - call.start_ns) == (False, 2_000_000_000)


def test_one_after_the_other_under_one_call_id_are_two_attempts() -> None:
    """A middleware that retries keeps the id of the call that the model asked for."""
    run = run_of(
        agent(1, end=9),
        tool(2, 1, "search", call_id="7", start=1, end=2, failed=True),
        tool(3, 1, "search", call_id="7", start=2, end=3),
    )

    assert calls_of(run) == [("search", False), ("search", True)]
    assert run.retries == 1


def test_calls_within_a_call_that_was_told_twice_are_within_the_one() -> None:
    run = run_of(
        agent(1, end=9),
        tool(2, 1, "ask", call_id="7", start=1, end=5),
        tool(3, 1, "ask", call_id="7", start=1, end=5),
        tool(4, 3, "inner", start=2, end=3),
        tool(5, 1, "next", start=6),
    )

    assert run.path == ("ask", "inner", "next")


def test_a_span_may_tell_several_calls() -> None:
    """Haystack's ToolInvoker: the same times for all, in the order of their names."""
    told = ToolFacts((Call("z"), Call("a", failed=True)))
    run = run_of(agent(1, end=9), agent_span(Kind.TOOL, told, 2, 1, start=1, end=2))

    assert run.path == ("a", "z")
    assert calls_of(run) == [("a", False), ("z", True)]


def test_the_order_within_groups_changes_nothing_else() -> None:
    spans = [agent(1, end=9), tool(2, 1, "z", start=1, end=5), tool(3, 1, "a", start=2, end=6)]

    assert run_of(*spans, settings=AS_STARTED) == replace(run_of(*spans), path=("z", "a"))
