from __future__ import annotations

import pytest

from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_SERVER,
    AgentSpan,
    Call,
    InvocationFacts,
    Resource,
)
from otel_reliability.testing import RESOURCE, agent, handoff, model, other, span_id, tool, trace_id, workflow
from tests.assembly.rebuilding import chain, invocation, names_of, rebuilt, run_of

# --- What is an invocation, and what is a run -------------------------------------------------------------------------


def test_an_agent_is_a_run_even_if_it_did_nothing() -> None:
    """An agent without steps is a run with an empty path; no tool was called."""
    run = run_of(agent(1, called="support"))

    assert (run.key.agent, run.path, run.tool_calls, run.nested, run.implicit) == ("support", (), (), False, False)
    assert (run.run_id, run.root_span_id) == (f"{trace_id(1).hex()}-{span_id(1).hex()}", span_id(1))


def test_a_workflow_is_a_run_only_if_it_has_steps() -> None:
    """A container in which nothing happened is nothing. A call of an agent is a step."""
    assert rebuilt(workflow(1, called="crew")) == []
    assert names_of(workflow(1, called="crew"), agent(2, 1, "one", failed=True)) == [("one", False)]
    assert names_of(workflow(1, called="crew"), model(2, 1)) == [("crew", False)]


def test_a_chain_is_a_container_if_work_lies_below_and_nothing_above() -> None:
    """A chain at the top with work is a run; a chain below it is not another; one without work is nothing."""
    assert names_of(chain(1), chain(2, 1), tool(3, 2, "search")) == [("shop", False)]
    assert rebuilt(chain(1), other(2, 1)) == []


def test_a_chain_below_an_agent_is_only_passed_through() -> None:
    """Its steps are the agent's."""
    assert run_of(agent(1), chain(2, 1), tool(3, 2, "search")).path == ("search",)
    assert len(rebuilt(agent(1), chain(2, 1), tool(3, 2, "search"))) == 1


@pytest.mark.parametrize("kind", [KIND_SERVER, KIND_CONSUMER])
def test_a_relabelled_transport_span_is_no_container(kind: int) -> None:
    """Two runs under one request stay two, though an instrumentation calls the request a chain."""
    request = chain(1, span_kind=kind, end=9)

    assert names_of(request, agent(2, 1, "one"), agent(3, 1, "two", start=2)) == [("one", False), ("two", False)]


@pytest.mark.parametrize("kind", [KIND_CLIENT, KIND_SERVER])
def test_of_other_kinds_nothing_follows(kind: int) -> None:
    """A CLIENT chain is a container like any other, and an agent is an agent whatever its span kind."""
    inside = [agent(2, 1, "one"), agent(3, 1, "two", start=2), tool(4, 3, start=2)]

    assert names_of(chain(1, span_kind=KIND_CLIENT, end=9), *inside) == [("one", False), ("two", True)]
    assert names_of(agent(1, span_kind=kind)) == [("agent", False)]


def test_the_encloser_is_found_through_any_span() -> None:
    """Steps belong to the nearest invocation above them, through web requests and whatever lies between."""
    spans = [agent(1), other(2, 1), other(3, 2), tool(4, 3, "search")]

    assert run_of(*spans).path == ("search",)


# --- Same invocation or nested run ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(agent(2, 1, None), id="unnamed"),
        pytest.param(workflow(2, 1, "graph"), id="a workflow"),
        pytest.param(agent(2, 1, "outer"), id="of the same name"),
    ],
)
def test_the_same_invocation_is_no_run_of_its_own(inner: AgentSpan) -> None:
    """An invocation that is unnamed, a workflow, or of its encloser's name tells the same run again."""
    (run,) = rebuilt(agent(1, called="outer"), inner, tool(3, 2, "search"))

    assert (run.key.agent, run.path) == ("outer", ("search",))


def test_the_name_of_any_encloser_in_the_chain_counts() -> None:
    """An agent that bears the name of an agent two levels up is that agent going on."""
    spans = [agent(1, called="outer"), agent(2, 1, "inner"), agent(3, 2, "outer"), tool(4, 3, "search")]

    assert names_of(*spans) == [("outer", False), ("inner", True)]


def test_in_a_container_the_agent_that_named_the_run_is_the_run() -> None:
    """A workflow takes the name of its first agent, which is no nested run then; its second agent is one."""
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
    """Unnamed, a workflow, or of the same name: called as a tool it is a run of its own."""
    for inner in (agent(3, 2, None), agent(3, 2, "outer"), workflow(3, 2, "graph")):
        spans = [agent(1, called="outer"), tool(2, 1, "ask"), inner, tool(4, 3, "search")]
        runs = rebuilt(*spans)

        assert [run.nested for run in runs] == [False, True]
        assert [run.path for run in runs] == [("ask", "search"), ("search",)]


def test_the_run_above_has_the_steps_too_each_by_the_agent_that_took_it() -> None:
    """A nested agent's steps count for both runs."""
    spans = [
        agent(1, called="outer", end=9),
        tool(2, 1, "search"),
        agent(3, 1, "inner", start=2),
        tool(4, 3, "book", start=2),
    ]
    outer, inner = rebuilt(*spans, model(5, 3, start=3), model(6, 1, start=4))

    assert [(call.name, call.agent) for call in outer.tool_calls or ()] == [("search", "outer"), ("book", "inner")]
    assert [call.agent for call in outer.model_calls] == ["inner", "outer"]
    assert [(call.name, call.agent) for call in inner.tool_calls or ()] == [("book", "inner")]


def test_an_agent_that_only_told_its_place_takes_its_steps_for_the_run() -> None:
    """Where the same invocation is told again, the steps below are the run's agent's."""
    run = run_of(agent(1, called="outer"), agent(2, 1, None), tool(3, 2, "search"))

    assert [call.agent for call in run.tool_calls or ()] == ["outer"]


def test_a_nested_agent_that_did_nothing_is_no_run_unless_it_failed() -> None:
    """An empty invocation tells nothing; a failure tells that there was one."""
    assert names_of(agent(1, called="outer"), agent(2, 1, "inner")) == [("outer", False)]
    assert names_of(agent(1, called="outer"), agent(2, 1, "inner", failed=True)) == [("outer", False), ("inner", True)]


# --- Names ------------------------------------------------------------------------------------------------------------


def test_the_root_agent_names_the_run() -> None:
    """Whatever the agents below are called."""
    assert names_of(agent(1, called="root", end=9), agent(2, 1, "other"), tool(3, 2))[0] == ("root", False)


def test_a_graph_that_is_the_agent_names_the_run() -> None:
    """LangGraph's root graph is the agent where nothing stands above it; a nested one is not."""
    graph = InvocationFacts("support", agent_if_root=True)

    assert names_of(chain(1, None, graph), agent(2, 1, "node"), tool(3, 2)) == [("support", False), ("node", True)]
    assert names_of(agent(1, called="root"), chain(2, 1, graph), tool(3, 2)) == [("root", False)]


def test_the_first_named_agent_by_start_names_a_container() -> None:
    """By its start, not by its span id or arrival, and never one that was called as a tool."""
    spans = [
        workflow(1, called="crew", end=9),
        agent(2, 1, "later", start=5),
        tool(6, 2, start=5),
        tool(3, 1, "ask", start=0.5, end=3),
        agent(4, 3, "called", start=1),
        agent(5, 1, "earlier", start=4),
        tool(7, 5, start=4),
    ]

    assert names_of(*spans)[0] == ("earlier", False)


def test_else_the_workflow_names_it_else_the_service() -> None:
    """A workflow's explicit name, then `service.name`; the SDK's placeholder names no agent."""
    nameless = RESOURCE._replace(service_name="unknown_service:python")

    assert names_of(workflow(1, called="crew"), model(2, 1)) == [("crew", False)]
    assert names_of(workflow(1), model(2, 1)) == [("shop", False)]
    assert names_of(workflow(1, resource=nameless), model(2, 1)) == [("unknown", False)]
    assert names_of(agent(1, called=None, resource=Resource())) == [("unknown", False)]


def test_a_weak_name_counts_where_nothing_else_names_the_run() -> None:
    """Of a chain of them the innermost; a strong name beats them all."""
    weak = [
        invocation(InvocationFacts(name, weak=True), n, n - 1 or None)
        for n, name in enumerate(["crew", "task", "role"], 1)
    ]

    assert names_of(*weak, tool(9, 3)) == [("role", False)]
    assert names_of(*weak, agent(4, 3, "strong"), tool(9, 4)) == [("strong", False)]


def test_a_class_names_the_run_where_nothing_better_does() -> None:
    """A fallback name comes after every other name, but before the service's."""
    assert names_of(invocation(InvocationFacts(fallback_name="ToolCallingAgent"), 1)) == [("ToolCallingAgent", False)]
    assert names_of(invocation(InvocationFacts(fallback_name="Agent"), 1), agent(2, 1, "inner"), tool(3, 2)) == [
        ("inner", False)
    ]


def test_a_managed_agent_bears_the_name_by_which_its_manager_calls_it() -> None:
    """Its own is only a class: the manager's only other agent, or the one its task names."""
    manager = InvocationFacts(fallback_name="ToolCallingAgent", manages=("billing",))
    managed = InvocationFacts(fallback_name="ToolCallingAgent", call=Call(None))
    two = manager._replace(manages=("billing", "refunds"))

    assert [run.key.agent for run in rebuilt(invocation(manager, 1), invocation(managed, 2, 1), tool(3, 2))][1:] == [
        "billing"
    ]
    called = managed._replace(called_as="refunds")
    assert [run.key.agent for run in rebuilt(invocation(two, 1), invocation(called, 2, 1), tool(3, 2))][1:] == [
        "refunds"
    ]


# --- Agents as tools, hand-offs, siblings -----------------------------------------------------------------------------


def test_an_agent_called_as_a_tool_is_one_step() -> None:
    """The tool call; what the agent did comes after it."""
    run = run_of(
        agent(1, called="outer", end=9), tool(2, 1, "ask", end=5), agent(3, 2, "inner"), tool(4, 3, "book", start=1)
    )

    assert run.path == ("ask", "book")


def test_an_agent_that_stands_for_its_own_call_is_a_step_and_a_run() -> None:
    """Smolagents tells no tool span for a managed agent (Q11): the call is the invocation, named and failed as it is."""
    managed = InvocationFacts("billing", call=Call(None))
    outer, inner = rebuilt(
        agent(1, called="outer", end=9), invocation(managed, 2, 1, failed=True, end=4), tool(3, 2, "book", start=1)
    )

    assert outer.path == ("billing", "book")
    assert [(call.name, call.ok, call.agent) for call in outer.tool_calls or ()] == [
        ("billing", False, "outer"),
        ("book", True, "billing"),
    ]
    assert inner.path == ("book",)


def test_such_an_agent_below_a_tool_span_is_told_by_that() -> None:
    """Where a tool span tells the call, the invocation does not tell it again."""
    managed = InvocationFacts("billing", call=Call(None))

    assert run_of(agent(1, end=9), tool(2, 1, "ask", end=5), invocation(managed, 3, 2), tool(4, 3, "book")).path == (
        "ask",
        "book",
    )


def test_a_hand_off_stands_in_the_path_only_where_a_span_tells_it() -> None:
    """As `→agent`; it is no tool call."""
    run = run_of(agent(1, called="one", end=9), tool(2, 1, "search"), handoff(3, 1, "two", start=2))

    assert run.path == ("search", "→two")
    assert [call.name for call in run.tool_calls or ()] == ["search"]


def test_a_transfer_tool_stays_a_tool() -> None:
    """A `transfer_to_…` call is a call."""
    assert run_of(agent(1), tool(2, 1, "transfer_to_billing")).path == ("transfer_to_billing",)


def test_sibling_agents_add_no_step() -> None:
    """Whom a workflow let work next stands in the agents of the steps, not in the path."""
    spans = [
        workflow(1, end=9),
        agent(2, 1, "one"),
        tool(3, 2, "a"),
        agent(4, 1, "two", start=2),
        tool(5, 4, "b", start=2),
    ]

    assert run_of(*spans).path == ("a", "b")


def test_a_hand_off_to_nobody_known_goes_to_the_next_agent_to_start() -> None:
    """Where the span names no agent (Q37), the next to begin is meant; without one it stays open."""
    spans = [
        workflow(1, end=9),
        agent(2, 1, "one"),
        handoff(3, 2, None, start=0.5),
        agent(4, 1, "two", start=2),
        model(5, 4, start=2),
    ]

    assert run_of(*spans).path == ("→two",)
    assert run_of(agent(1, called="one"), handoff(3, 1, None, start=0.5)).path == ("→?",)


# --- Leaked context ---------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("failed", "start", "end"),
    [
        pytest.param(False, 3, 5, id="nothing failed"),
        pytest.param(True, 1, 5, id="it began before the failure"),
        pytest.param(True, 3, 1.5, id="it ended within"),
    ],
)
def test_else_it_is_below(failed: bool, start: float, end: float) -> None:
    """An agent that does not fit the picture of a leak is nested, clocks being what they are."""
    spans = [
        agent(1, called="one", end=2, failed=failed),
        agent(3, 1, "two", start=start, end=end),
        tool(4, 3, start=start),
    ]

    assert ("two", True) in names_of(*spans)


def test_what_leaked_through_a_container_stands_alone_too() -> None:
    """The failed agent may be a sibling: what counts is that it failed below what both hang on."""
    spans = [
        workflow(1, called="crew", end=2),
        agent(2, 1, "one", end=1.9, failed=True),
        agent(3, 1, "two", start=3, end=5),
        tool(4, 3, "book", start=3),
    ]

    assert names_of(*spans) == [("one", False), ("two", False)]


def test_below_a_tool_nothing_leaks() -> None:
    """A call that outlives its run is still that run's."""
    spans = [
        agent(1, called="one", end=2, failed=True),
        tool(2, 1, "ask", end=9),
        agent(3, 2, "two", start=3, end=5),
        tool(4, 3, "book", start=3),
    ]

    assert names_of(*spans) == [("one", False), ("two", True)]


# --- Links ------------------------------------------------------------------------------------------------------------


def test_a_messaging_hop_joins_traces() -> None:
    """The one link of a parentless hop is its parent, across traces; ids are ids within their trace."""
    spans = [
        agent(1, called="one", end=9),
        other(2, 1),
        other(1, trace=2, link=(trace_id(1), span_id(2))),
        agent(2, 1, "two", trace=2, start=1),
        tool(3, 2, "book", trace=2, start=2),
    ]
    outer, inner = rebuilt(*spans)

    assert (outer.path, outer.trace_id, outer.nested) == (("book",), trace_id(1), False)
    assert (inner.key.agent, inner.trace_id, inner.root_span_id, inner.nested) == ("two", trace_id(2), span_id(2), True)


def test_a_span_with_a_parent_follows_its_parent() -> None:
    """A link beside a parent joins nothing."""
    linked = agent(1, 9, "two", trace=2, link=(trace_id(1), span_id(1)), remote=True)

    assert names_of(agent(1, called="one"), linked) == [("one", False), ("two", False)]


# --- Whose run it is --------------------------------------------------------------------------------------------------


def test_the_key_is_of_the_service_and_the_agent() -> None:
    """Namespace, name and environment of the resource, and the agent; absent parts are empty; `extra` is added."""
    resource = Resource.of({"service.namespace": "eu", "service.name": "desk"})
    extra = (("service.version", "2"),)

    assert run_of(agent(1, resource=resource)).key[:4] == ("eu", "desk", "", "agent")
    assert run_of(agent(1)._replace(extra=extra)).key.extra == extra


def test_a_run_begins_and_ends_with_its_spans() -> None:
    """Children may begin before their parents and end after them: clocks differ, and some children outlive theirs."""
    run = run_of(agent(1, start=2, end=3), tool(2, 1, start=1), model(3, 1, start=4, end=6))

    assert run.duration_s == 5
