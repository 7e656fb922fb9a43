from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_SERVER,
    AgentSpan,
    Call,
    InvocationFacts,
    Resource,
)
from otel_reliability.testing import (
    RESOURCE,
    agent,
    handoff,
    model,
    other,
    span_id,
    tool,
    trace_id,
    workflow,
)
from tests.assembly.rebuilding import chain, invocation, names_of, rebuilt, run_of

# --- What is an invocation, and what is a run -----------------------------------------------------


GRAPH = InvocationFacts("support", agent_if_root=True)
"""LangGraph's root graph is the agent where nothing stands above it."""
NAMELESS = replace(RESOURCE, service_name="unknown_service:python")
WEAK = [
    invocation(InvocationFacts(name, weak=True), n, n - 1 or None)
    for n, name in enumerate(["crew", "task", "role"], 1)
]
MANAGER = InvocationFacts(fallback_name="ToolCallingAgent", manages=("billing",))
MANAGED = InvocationFacts(fallback_name="ToolCallingAgent", call=Call(None))
FAILED = agent(1, called="one", end=2, failed=True)

RUNS: Mapping[str, tuple[Sequence[AgentSpan], Sequence[tuple[str, bool]]]] = {
    # what is a run
    "a workflow in which nothing happened is none": ([workflow(1, called="crew")], []),
    "a call of an agent is a step of a workflow": (
        [workflow(1, called="crew"), agent(2, 1, "one", failed=True)],
        [("one", False)],
    ),
    "a workflow with a step is one": ([workflow(1, called="crew"), model(2, 1)], [("crew", False)]),
    "a chain at the top with work below is one, a chain below it is not": (
        [chain(1), chain(2, 1), tool(3, 2, "search")],
        [("shop", False)],
    ),
    "a chain without work is none": ([chain(1), other(2, 1)], []),
    "a SERVER chain is no container": (
        [chain(1, span_kind=KIND_SERVER, end=9), agent(2, 1, "one"), agent(3, 1, "two", start=2)],
        [("one", False), ("two", False)],
    ),
    "a CONSUMER chain is no container": (
        [chain(1, span_kind=KIND_CONSUMER, end=9), agent(2, 1, "one"), agent(3, 1, "two", start=2)],
        [("one", False), ("two", False)],
    ),
    "a CLIENT chain is a container": (
        [
            chain(1, span_kind=KIND_CLIENT, end=9),
            agent(2, 1, "one"),
            agent(3, 1, "two", start=2),
            tool(4, 3, start=2),
        ],
        [("one", False), ("two", True)],
    ),
    "a CLIENT agent is an agent": ([agent(1, span_kind=KIND_CLIENT)], [("agent", False)]),
    "a SERVER agent is an agent": ([agent(1, span_kind=KIND_SERVER)], [("agent", False)]),
    "an agent of the name of an agent two levels up is that agent": (
        [
            agent(1, called="outer"),
            agent(2, 1, "inner"),
            agent(3, 2, "outer"),
            tool(4, 3, "search"),
        ],
        [("outer", False), ("inner", True)],
    ),
    "a nested agent that did nothing is none": (
        [agent(1, called="outer"), agent(2, 1, "inner")],
        [("outer", False)],
    ),
    "a nested agent that failed is one": (
        [agent(1, called="outer"), agent(2, 1, "inner", failed=True)],
        [("outer", False), ("inner", True)],
    ),
    "a link next to a parent joins nothing": (
        [
            agent(1, called="one"),
            agent(2, 9, "two", trace=2, link=(trace_id(1), span_id(1)), remote=True),
        ],
        [("one", False), ("two", False)],
    ),
    # its name
    "the root agent names the run": (
        [agent(1, called="root", end=9), agent(2, 1, "other"), tool(3, 2)],
        [("root", False), ("other", True)],
    ),
    "a graph that is the agent names the run": (
        [chain(1, None, GRAPH), agent(2, 1, "node"), tool(3, 2)],
        [("support", False), ("node", True)],
    ),
    "a nested graph does not": (
        [agent(1, called="root"), chain(2, 1, GRAPH), tool(3, 2)],
        [("root", False)],
    ),
    "the first named agent by start, not below a tool, names a container": (
        [
            workflow(1, called="crew", end=9),
            agent(2, 1, "later", start=5),
            tool(6, 2, start=5),
            tool(3, 1, "ask", start=0.5, end=3),
            agent(4, 3, "called", start=1),
            agent(5, 1, "earlier", start=4),
            tool(7, 5, start=4),
        ],
        [("earlier", False), ("later", True)],
    ),
    "else the service": ([workflow(1), model(2, 1)], [("shop", False)]),
    "but not the SDK's placeholder": (
        [workflow(1, resource=NAMELESS), model(2, 1)],
        [("unknown", False)],
    ),
    "without any name it is unknown": (
        [agent(1, called=None, resource=Resource())],
        [("unknown", False)],
    ),
    "of weak names the innermost": ([*WEAK, tool(9, 3)], [("role", False)]),
    "a strong name before weak ones": (
        [*WEAK, agent(4, 3, "strong"), tool(9, 4)],
        [("strong", False)],
    ),
    "a class before the service": (
        [invocation(InvocationFacts(fallback_name="ToolCallingAgent"), 1)],
        [("ToolCallingAgent", False)],
    ),
    "an agent below before a class": (
        [invocation(InvocationFacts(fallback_name="Agent"), 1), agent(2, 1, "inner"), tool(3, 2)],
        [("inner", False)],
    ),
    "a managed agent has the name of its manager's only other agent": (
        [invocation(MANAGER, 1), invocation(MANAGED, 2, 1), tool(3, 2)],
        [("ToolCallingAgent", False), ("billing", True)],
    ),
    "of several the one that its task names": (
        [
            invocation(replace(MANAGER, manages=("billing", "refunds")), 1),
            invocation(replace(MANAGED, called_as="refunds"), 2, 1),
            tool(3, 2),
        ],
        [("ToolCallingAgent", False), ("refunds", True)],
    ),
    # leaked context
    "where nothing failed, nothing leaked": (
        [replace(FAILED, failed=False), agent(3, 1, "two", start=3, end=5), tool(4, 3, start=3)],
        [("one", False), ("two", True)],
    ),
    "an agent that began before the failure is nested": (
        [FAILED, agent(3, 1, "two", start=1, end=5), tool(4, 3, start=1)],
        [("one", False), ("two", True)],
    ),
    "an agent that ended within the failed one is nested": (
        [FAILED, agent(3, 1, "two", start=3, end=1.5), tool(4, 3, start=3)],
        [("one", False), ("two", True)],
    ),
    "a context may leak through a container": (
        [
            workflow(1, called="crew", end=2),
            agent(2, 1, "one", end=1.9, failed=True),
            agent(3, 1, "two", start=3, end=5),
            tool(4, 3, "book", start=3),
        ],
        [("one", False), ("two", False)],
    ),
    "below a tool nothing leaks": (
        [
            FAILED,
            tool(2, 1, "ask", end=9),
            agent(3, 2, "two", start=3, end=5),
            tool(4, 3, "book", start=3),
        ],
        [("one", False), ("two", True)],
    ),
}


@pytest.mark.parametrize(("spans", "expected"), RUNS.values(), ids=RUNS)
def test_a_trace_has_these_runs(
    spans: Sequence[AgentSpan], expected: Sequence[tuple[str, bool]]
) -> None:
    assert names_of(*spans) == expected


def test_an_agent_is_a_run_even_if_it_did_nothing() -> None:
    run = run_of(agent(1, called="support"))

    assert (run.key.agent, run.path, run.tool_calls, run.nested, run.implicit) == (
        "support",
        (),
        (),
        False,
        False,
    )
    assert (run.run_id, run.root_span_id) == (f"{trace_id(1).hex()}-{span_id(1).hex()}", span_id(1))


def test_a_chain_below_an_agent_is_only_passed_through() -> None:
    assert run_of(agent(1), chain(2, 1), tool(3, 2, "search")).path == ("search",)
    assert len(rebuilt(agent(1), chain(2, 1), tool(3, 2, "search"))) == 1


def test_the_encloser_is_found_through_any_span() -> None:
    spans = [agent(1), other(2, 1), other(3, 2), tool(4, 3, "search")]

    assert run_of(*spans).path == ("search",)


# --- Same invocation or nested run ----------------------------------------------------------------


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(agent(2, 1, None), id="unnamed"),
        pytest.param(workflow(2, 1, "graph"), id="a workflow"),
        pytest.param(agent(2, 1, "outer"), id="of the same name"),
    ],
)
def test_the_same_invocation_is_no_run_of_its_own(inner: AgentSpan) -> None:
    """An invocation that is unnamed, a workflow, or of its encloser's name tells the same run
    again.
    """
    (run,) = rebuilt(agent(1, called="outer"), inner, tool(3, 2, "search"))

    assert (run.key.agent, run.path) == ("outer", ("search",))


def test_in_a_container_the_agent_that_named_the_run_is_the_run() -> None:
    """A workflow takes the name of its first agent, which is no nested run then; its second agent
    is one.
    """
    spans = [
        workflow(1, called="crew", end=9),
        agent(2, 1, "first"),
        tool(3, 2, "search"),
        agent(4, 1, "second", start=2),
        tool(5, 4, "book", start=2),
    ]
    outer, inner = rebuilt(*spans)

    assert (outer.key.agent, outer.path, outer.nested) == ("first", ("search", "book"), False)
    assert (inner.key.agent, inner.path, inner.nested) == ("second", ("book",), True)


def test_below_a_tool_every_agent_is_a_run() -> None:
    for inner in (agent(3, 2, None), agent(3, 2, "outer"), workflow(3, 2, "graph")):
        spans = [agent(1, called="outer"), tool(2, 1, "ask"), inner, tool(4, 3, "search")]
        runs = rebuilt(*spans)

        assert [run.nested for run in runs] == [False, True]
        assert [run.path for run in runs] == [("ask", "search"), ("search",)]


def test_the_run_above_has_the_steps_too_each_by_the_agent_that_took_it() -> None:
    spans = [
        agent(1, called="outer", end=9),
        tool(2, 1, "search"),
        agent(3, 1, "inner", start=2),
        tool(4, 3, "book", start=2),
    ]
    outer, inner = rebuilt(*spans, model(5, 3, start=3), model(6, 1, start=4))

    assert [(call.name, call.agent) for call in outer.tool_calls or ()] == [
        ("search", "outer"),
        ("book", "inner"),
    ]
    assert [call.agent for call in outer.model_calls] == ["inner", "outer"]
    assert [(call.name, call.agent) for call in inner.tool_calls or ()] == [("book", "inner")]


def test_an_agent_that_only_told_its_place_takes_its_steps_for_the_run() -> None:
    run = run_of(agent(1, called="outer"), agent(2, 1, None), tool(3, 2, "search"))

    assert [call.agent for call in run.tool_calls or ()] == ["outer"]


# --- Agents as tools, hand-offs, siblings ---------------------------------------------------------


def test_an_agent_that_stands_for_its_own_call_is_a_step_and_a_run() -> None:
    """Smolagents tells no tool span for a managed agent (Q11): the call is the invocation, named
    and failed as it is.
    """
    managed = InvocationFacts("billing", call=Call(None))
    outer, inner = rebuilt(
        agent(1, called="outer", end=9),
        invocation(managed, 2, 1, failed=True, end=4),
        tool(3, 2, "book", start=1),
    )

    assert outer.path == ("billing", "book")
    assert [(call.name, call.ok, call.agent) for call in outer.tool_calls or ()] == [
        ("billing", False, "outer"),
        ("book", True, "billing"),
    ]
    assert inner.path == ("book",)


def test_such_an_agent_below_a_tool_span_is_told_by_that() -> None:
    managed = InvocationFacts("billing", call=Call(None))

    assert run_of(
        agent(1, end=9), tool(2, 1, "ask", end=5), invocation(managed, 3, 2), tool(4, 3, "book")
    ).path == (
        "ask",
        "book",
    )


def test_a_hand_off_stands_in_the_path_only_where_a_span_tells_it() -> None:
    run = run_of(agent(1, called="one", end=9), tool(2, 1, "search"), handoff(3, 1, "two", start=2))

    assert run.path == ("search", "→two")
    assert [call.name for call in run.tool_calls or ()] == ["search"]


def test_a_transfer_tool_stays_a_tool() -> None:
    assert run_of(agent(1), tool(2, 1, "transfer_to_billing")).path == ("transfer_to_billing",)


def test_sibling_agents_add_no_step() -> None:
    spans = [
        workflow(1, end=9),
        agent(2, 1, "one"),
        tool(3, 2, "a"),
        agent(4, 1, "two", start=2),
        tool(5, 4, "b", start=2),
    ]

    assert run_of(*spans).path == ("a", "b")


def test_a_hand_off_to_nobody_known_goes_to_the_next_agent_to_start() -> None:
    """Where the span names no agent (Q37), the next to begin is meant; without one
    it stays open.
    """
    spans = [
        workflow(1, end=9),
        agent(2, 1, "one"),
        handoff(3, 2, None, start=0.5),
        agent(4, 1, "two", start=2),
        model(5, 4, start=2),
    ]

    assert run_of(*spans).path == ("→two",)
    assert run_of(agent(1, called="one"), handoff(3, 1, None, start=0.5)).path == ("→?",)


# --- Leaked context -------------------------------------------------------------------------------


def test_a_run_that_leaked_below_a_failed_one_stands_alone() -> None:
    """It began after the failed agent ended, and outlives what it hangs on."""
    spans = [
        agent(1, called="one", end=2, failed=True),
        tool(2, 1, "search"),
        agent(3, 1, "two", start=3, end=5),
        tool(4, 3, "book", start=3),
    ]

    assert [(run.key.agent, run.nested, run.path) for run in rebuilt(*spans)] == [
        ("one", False, ("search",)),
        ("two", False, ("book",)),
    ]


# --- Links ----------------------------------------------------------------------------------------


def test_a_messaging_hop_joins_traces() -> None:
    """The one link of a parentless hop is its parent, across traces; ids are ids within their
    trace.
    """
    spans = [
        agent(1, called="one", end=9),
        other(2, 1),
        other(1, trace=2, link=(trace_id(1), span_id(2))),
        agent(2, 1, "two", trace=2, start=1),
        tool(3, 2, "book", trace=2, start=2),
    ]
    outer, inner = rebuilt(*spans)

    assert (outer.path, outer.trace_id, outer.nested) == (("book",), trace_id(1), False)
    assert (inner.key.agent, inner.trace_id, inner.root_span_id, inner.nested) == (
        "two",
        trace_id(2),
        span_id(2),
        True,
    )


# --- Whose run it is ------------------------------------------------------------------------------


def test_the_key_is_of_the_service_and_the_agent() -> None:
    """Namespace, name and environment of the resource, and the agent; absent parts are empty;
    `extra` is added.
    """
    resource = Resource.of({"service.namespace": "eu", "service.name": "desk"})
    extra = (("service.version", "2"),)

    assert run_of(agent(1, resource=resource)).key[:4] == ("eu", "desk", "", "agent")
    assert run_of(replace(agent(1), extra=extra)).key.extra == extra


def test_a_run_begins_and_ends_with_its_spans() -> None:
    """Children may begin before their parents and end after them: clocks differ, and some children
    outlive theirs.
    """
    run = run_of(agent(1, start=2, end=3), tool(2, 1, start=1), model(3, 1, start=4, end=6))

    assert run.duration_s == 5
