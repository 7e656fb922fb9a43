from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.model.run import Outcome
from otel_reliability.model.span import (
    KIND_CONSUMER,
    KIND_SERVER,
    AgentSpan,
    InvocationFacts,
    ModelFacts,
    Notes,
    ToolFacts,
)
from otel_reliability.testing import RESOURCE, agent, handoff, model, other, span_id, tool, trace_id
from tests.assembly.rebuilding import accounts_of, asking, chain, names_of, rebuilt, run_of

# --- A local parent that never came ---------------------------------------------------------------


def test_work_whose_parent_never_came_is_one_incomplete_run() -> None:
    run = run_of(tool(2, 1, "search"), tool(3, 1, "book", start=2))

    assert (run.path, run.key.agent) == (("search", "book"), "shop")
    assert (run.implicit, run.incomplete, run.root_span_id) == (True, True, None)
    assert run.run_id == f"{trace_id(1).hex()}-{span_id(1).hex()}"


def test_each_missing_parent_is_a_run() -> None:
    assert [run.path for run in rebuilt(tool(3, 1, "search"), tool(4, 2, "book", start=2))] == [
        ("search",),
        ("book",),
    ]


@pytest.mark.parametrize("flag", [False, None])
def test_a_parent_is_local_unless_it_is_known_to_be_remote(flag: bool | None) -> None:
    """No flags at all mean a local parent."""
    assert run_of(tool(2, 1, "search", remote=flag)).incomplete


def test_lone_model_calls_below_a_missing_parent_are_a_run_too() -> None:
    """What is lost may have been an agent: the rule for lone model calls is for those that nothing
    was lost above.
    """
    run = run_of(model(2, 1, (100, 10)), model(3, 1, (50, 5), start=2))

    assert (run.input_tokens, run.output_tokens, run.path, run.incomplete) == (150, 15, (), True)


def test_the_gap_may_lie_above_other_spans() -> None:
    run = run_of(tool(3, 2, "search"), other(2, 1))

    assert (run.incomplete, run.run_id[-2:]) == (True, "01")


def test_the_only_agent_of_the_trace_names_it() -> None:
    one = [agent(9, called="support", start=5), tool(3, 1, "search")]

    assert names_of(*one) == [("support", False), ("support", False)]
    assert names_of(*one, agent(8, called="billing", start=7))[0] == ("shop", False)


def test_steps_that_name_their_agent_name_it() -> None:
    one = tool(3, 1, "search")
    assert isinstance(one.facts, ToolFacts)
    one = replace(one, facts=replace(one.facts, agent="desk"))

    assert run_of(one).key.agent == "desk"
    assert run_of(replace(one, parent_id=None)).key.agent == "desk"


def test_a_turn_without_its_agent_is_no_container() -> None:
    turn = replace(chain(1), facts=InvocationFacts(is_turn=True))

    assert run_of(turn, tool(2, 1, "search")).implicit


def test_below_a_gap_a_chain_is_no_container() -> None:
    """What is missing may have been the agent: the chain's work is implicit."""
    run = run_of(chain(2, 1), tool(3, 2, "search"))

    assert (run.implicit, run.incomplete) == (True, True)


def test_an_agent_whose_own_parent_never_came_is_complete() -> None:
    """A web request exported elsewhere is above many agents; the run is all there."""
    run = run_of(agent(2, 1), tool(3, 2))

    assert (run.implicit, run.incomplete) == (False, False)


# --- Adoption -------------------------------------------------------------------------------------


def lost(start: float = 2, end: float = 3) -> list[AgentSpan]:
    """Two calls below a span that was lost, from `start` to `end`."""
    return [
        tool(8, 7, "search", start=start, end=start + 0.2),
        tool(9, 7, "book", start=start + 0.5, end=end),
    ]


def test_the_one_run_around_it_adopts_lost_work() -> None:
    (run,) = rebuilt(agent(1, end=5), tool(2, 1, "first"), *lost())

    assert (run.path, run.implicit, run.incomplete, run.span_count) == (
        ("first", "search", "book"),
        False,
        False,
        4,
    )


@pytest.mark.parametrize(("start", "end"), [(0.5, 3), (2, 6)])
def test_only_a_run_that_encloses_it_in_time(start: float, end: float) -> None:
    assert [run.implicit for run in rebuilt(agent(1, start=1, end=5), *lost(start, end))].count(
        True
    ) == 1


def test_two_runs_around_it_adopt_nothing() -> None:
    runs = rebuilt(agent(1, called="one", end=5), agent(2, called="two", end=6), *lost())

    assert sorted((run.key.agent, run.path) for run in runs) == [
        ("one", ()),
        ("shop", ("search", "book")),
        ("two", ()),
    ]


def test_nested_runs_do_not_adopt() -> None:
    runs = rebuilt(
        agent(1, called="outer", end=9), agent(2, 1, "inner", end=8), tool(3, 2, "a"), *lost()
    )

    assert {run.key.agent: run.path for run in runs} == {
        "outer": ("a", "search", "book"),
        "inner": ("a",),
    }


def test_an_agent_below_what_was_adopted_is_nested() -> None:
    spans = [
        agent(1, called="outer", end=9),
        tool(8, 7, "ask", start=2, end=5),
        agent(9, 8, "inner", start=3),
        tool(10, 9, "a", start=3),
    ]

    assert names_of(*spans) == [("outer", False), ("inner", True)]
    assert names_of(*spans[1:]) == [("inner", False), ("inner", False)]


def test_what_is_adopted_adopts_nothing() -> None:
    """The longest is decided first: all of it goes to the run around it all."""
    inner = [
        tool(8, 7, "ask", start=2, end=8),
        agent(9, 8, "inner", start=3, end=7),
        tool(10, 9, "own", start=3),
    ]
    deep = tool(12, 11, "deep", start=4, end=5)
    outer, nested = rebuilt(agent(1, called="outer", end=9), *inner, deep)

    assert (outer.path, nested.path) == (("ask", "own", "deep"), ("own",))


def test_a_run_below_a_gap_may_adopt_what_nothing_else_does() -> None:
    inner = [
        tool(8, 7, "ask", start=2, end=8),
        agent(9, 8, "inner", start=3, end=7),
        tool(12, 11, "deep", start=4, end=5),
    ]

    assert {run.path for run in rebuilt(*inner)} == {("ask",), ("deep",)}


# --- Siblings of their agent ----------------------------------------------------------------------


def siblings(end: float = 4) -> list[AgentSpan]:
    """A request, and below it an agent beside its own steps, as streams lose context."""
    return [
        other(1, start=0, end=9),
        agent(2, 1, start=1, end=8),
        model(3, 1, start=1.5, end=2),
        tool(4, 1, "search", start=3, end=end),
    ]


def test_steps_beside_the_only_agent_of_their_parent_are_its_steps() -> None:
    (run,) = rebuilt(*siblings())

    assert (run.path, run.input_tokens, run.key.agent, run.span_count) == (
        ("search",),
        100,
        "agent",
        3,
    )


def test_a_sibling_outside_of_the_agents_time_is_not_its_step() -> None:
    assert rebuilt(*siblings(end=8.5))[0].path != ("search",)


def test_siblings_of_two_agents_are_no_ones_steps() -> None:
    runs = rebuilt(*siblings(), agent(5, 1, "second", start=1, end=8))

    assert all(run.path != ("search",) for run in runs)


def test_a_sibling_of_another_scope_is_no_step_of_an_agent_with_steps_of_its_own() -> None:
    (run,) = rebuilt(
        other(1, start=0, end=9),
        agent(2, 1, start=1, end=8),
        tool(3, 2, "search", start=2, end=3),
        model(4, 1, start=4, end=5, scope="moderation"),
    )

    assert (run.input_tokens, run.path) == (None, ("search",))


def test_of_several_agents_beside_a_step_the_one_that_encloses_it_takes_it() -> None:
    spans = [
        other(1, start=0, end=30),
        agent(2, 1, start=1, end=9),
        agent(3, 1, start=11, end=19),
        tool(4, 1, "search", start=2, end=3),
        tool(5, 1, "book", start=12, end=13),
    ]

    assert [run.path for run in rebuilt(*spans)] == [("search",), ("book",)]


@pytest.mark.parametrize(
    ("ends", "paths"), [((9, 9), [None, None]), ((1.5, 9), [(), None]), ((9, 2), [None, ()])]
)
def test_a_call_that_several_agents_may_have_made_hides_the_paths_of_those_around_it(
    ends: tuple[float, float], paths: list[object]
) -> None:
    spans = [
        other(1, start=0, end=30),
        *(agent(n, 1, start=1, end=end, called=f"a{n}") for n, end in enumerate(ends, start=2)),
        *(model(n, n - 10, start=1.1, end=1.2) for n in (12, 13)),
        tool(4, None, "search", start=3, end=4),
    ]

    found = {run.key.agent: run.path for run in rebuilt(*spans)}
    assert [found["a2"], found["a3"]] == paths


def test_an_agent_that_shows_no_step_may_have_made_a_call_after_its_end() -> None:
    """The span of a generator ends before its work begins."""
    spans = [
        other(1, start=0, end=30),
        agent(2, 1, start=1, end=1.001),
        tool(4, 1, "search", start=3, end=4),
    ]

    assert run_of(*spans).path is None


# --- No parent, or one elsewhere ------------------------------------------------------------------


@pytest.mark.parametrize("remote", [None, True])
def test_beside_an_agent_it_is_nobodys(remote: bool | None) -> None:
    """The agent may have made the call, so its path is unknown, not empty."""
    lone = tool(3, 99 if remote else None, "search", remote=remote)
    spans = [agent(1), lone, model(4, start=2)]

    assert [run.path for run in rebuilt(*spans)] == [None]
    assert accounts_of(*spans) == {("used", ""): 1, ("other", "beside_agent"): 2}


def test_without_an_agent_a_tool_call_makes_an_implicit_run() -> None:
    run = run_of(other(1, span_kind=KIND_SERVER), tool(2, 1, "search"), model(3, 1, start=2))

    assert (run.implicit, run.incomplete, run.path, run.key.agent) == (
        True,
        False,
        ("search",),
        "shop",
    )
    assert len(run.model_calls) == 1


@pytest.mark.parametrize("kind", [KIND_SERVER, KIND_CONSUMER])
def test_the_far_end_of_a_call_makes_none(kind: int) -> None:
    """A SERVER or CONSUMER tool span is told by whoever serves the tool, not by whoever runs the
    agent.
    """
    spans = [tool(2, 1, "search", span_kind=kind, remote=True)]

    assert rebuilt(*spans) == []
    assert accounts_of(*spans) == {("other", "no_agent"): 1}


def test_lone_model_calls_make_none() -> None:
    """A client called in a loop: each call is its own trace, and nothing says which belong
    together.
    """
    spans = [model(1, trace=1), model(1, trace=2), model(2, trace=2, start=2)]

    assert rebuilt(*spans) == []
    assert accounts_of(*spans) == {("other", "no_agent"): 3}


def test_a_lone_hand_off_makes_none() -> None:
    assert rebuilt(handoff(1, None, "billing")) == []


# --- The user's own key ---------------------------------------------------------------------------


def keyed(span: AgentSpan, key: str = "aa") -> AgentSpan:
    """The span with the hash of the user's run key."""
    return replace(span, notes=Notes(run_key=key))


def test_a_run_key_groups_lone_work_across_traces() -> None:
    settings = Settings(assembly=AssemblySettings(run_key="chat.id"))
    spans = [
        keyed(model(1, None, (10, 1), trace=1)),
        keyed(model(1, None, (20, 2), trace=2, start=1)),
        keyed(tool(1, None, "search", trace=3, start=2)),
        keyed(model(1, None, trace=4, start=3), "bb"),
    ]
    one, two = rebuilt(*spans, settings=settings)

    assert (one.path, one.input_tokens, len(one.model_calls), one.implicit, one.incomplete) == (
        ("search",),
        30,
        2,
        True,
        False,
    )
    assert (one.run_id, two.run_id) == (f"{trace_id(1).hex()}-aa", f"{trace_id(4).hex()}-bb")


def test_below_an_agent_a_run_key_is_nothing() -> None:
    assert run_of(agent(1), keyed(tool(2, 1, "search"))).path == ("search",)


# --- Their outcome --------------------------------------------------------------------------------


def test_the_last_topmost_span_tells_of_a_failure() -> None:
    """Of a run whose root never came, nothing tells of a success."""
    assert run_of(tool(2, 1), tool(3, 1, start=2, failed=True)).outcome is Outcome.FAILURE
    assert run_of(tool(2, 1, failed=True), tool(3, 1, start=2)).outcome is Outcome.UNKNOWN
    assert run_of(tool(2, 1, end=5), model(4, 2, start=1, failed=True)).outcome is Outcome.UNKNOWN


def test_arguments_may_be_in_messages_only() -> None:
    """An implicit run observes its tools as any other: what its model calls asked for and nobody
    saw is unobservable.
    """
    assert run_of(asking(ModelFacts(asked_for_tools=True), 2, 1)).path is None


def test_each_service_of_a_trace_has_runs_of_its_own() -> None:
    """A remote parent ends a unit: what another service did is not adopted by time."""
    far = replace(
        tool(5, 4, "far", start=2, end=3, remote=True),
        resource=replace(RESOURCE, service_name="far"),
    )

    assert [run.key.service_name for run in rebuilt(agent(1, end=5), tool(2, 1), far)] == ["shop"]
