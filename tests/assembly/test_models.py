from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.model.flaws import LOST_MODEL_CALLS, flaws_of
from otel_reliability.model.run import Run, Tools
from otel_reliability.model.span import AgentSpan, InvocationFacts, ModelFacts, Tokens
from otel_reliability.testing import agent, model, tool, workflow
from tests.assembly.rebuilding import asking, invocation, rebuilt, run_of


def tokens_of(*spans: AgentSpan) -> tuple[int | None, int | None]:
    run = run_of(*spans)
    return run.input_tokens, run.output_tokens


def totals(
    tokens: tuple[int, int] | None,
    number: int,
    parent: int | None = None,
    name: str | None = "agent",
) -> AgentSpan:
    """An agent that tells its own totals."""
    return invocation(
        InvocationFacts(name, tokens=None if tokens is None else Tokens(*tokens)),
        number,
        parent,
        end=9,
    )


def test_pressure_is_the_greatest_share_of_a_context_window() -> None:
    """Of input and output together, at most 1; unknown where no window is known."""

    def pressure(*calls: tuple[tuple[int | None, int | None], int | None]) -> float | None:
        spans = [
            replace(one, facts=replace(one.facts, context_limit=limit))
            for number, (tokens, limit) in enumerate(calls, 2)
            if isinstance((one := model(number, 1, tokens, start=number)).facts, ModelFacts)
        ]
        return run_of(agent(1, end=9), *spans).token_pressure

    shares = ((1_000, 100), 10_000), ((6_000, 400), 10_000), ((3_000, None), 10_000)
    assert pressure(*shares) == pressure(*reversed(shares)) == 0.64
    assert pressure(((6_000, 400), 10_000), ((900, 0), 1_000)) == 0.9
    assert pressure(((6_000, 400), 5_000)) == 1.0
    assert pressure(((6_000, 400), None), ((None, 400), 1_000)) is None


def test_a_run_has_the_tokens_of_its_model_calls() -> None:
    assert tokens_of(agent(1), model(2, 1, (100, 10)), model(3, 1, (50, 5), start=2)) == (150, 15)
    assert tokens_of(agent(1), model(2, 1, (100, None)), model(3, 1, (None, 5), start=2)) == (
        100,
        5,
    )
    assert tokens_of(agent(1), model(2, 1, (None, None))) == (None, None)
    assert tokens_of(agent(1)) == (None, None)


@pytest.mark.parametrize(
    ("reported", "tokens", "flaws"),
    [
        ((150, 15), (150, 15), ()),
        ((90, 9), (150, 15), ()),  # its own calls, without those of its sub-agents
        ((400, 15), (400, 15), (LOST_MODEL_CALLS,)),
        ((100, 40), (150, 40), (LOST_MODEL_CALLS,)),
    ],
)
def test_an_agent_that_reports_more_than_its_model_calls_lost_some(
    reported: tuple[int, int], tokens: tuple[int, int], flaws: tuple[str, ...]
) -> None:
    calls = model(2, 1, (100, 10), called="gpt-4o"), model(3, 1, (50, 5), called="gpt-4o", start=2)
    run = run_of(totals(reported, 1), *calls)

    assert ((run.input_tokens, run.output_tokens), run.flaws) == (tokens, flaws)
    assert (run.cost is None) == bool(flaws)


def test_what_an_agent_did_that_reports_tokens_and_nothing_below_is_unknown() -> None:
    """A hosted agent, or one whose other spans were not exported: no path, not an empty one."""
    [alone] = rebuilt(totals((150, 15), 1))
    [with_call] = rebuilt(totals((150, 15), 1), model(2, 1, (150, 15)))
    [silent] = rebuilt(agent(1))

    assert (alone.path, alone.tools, alone.flaws) == (None, Tools.UNOBSERVABLE, (LOST_MODEL_CALLS,))
    assert (with_call.path, with_call.tools, with_call.flaws) == ((), Tools.OBSERVED, ())
    assert (silent.path, silent.tools) == ((), Tools.OBSERVED)


# --- One call told twice --------------------------------------------------------------------------


def test_a_model_call_within_a_model_call_is_one() -> None:
    outer = model(2, 1, (100, None), end=5)
    inner = [model(3, 2, (90, 4), start=1), model(4, 2, (90, 6), start=2)]
    run = run_of(agent(1, end=9), outer, *inner)

    assert (run.input_tokens, run.output_tokens, len(run.model_calls)) == (100, 10, 1)


def test_at_any_depth() -> None:
    run = run_of(
        agent(1, end=9),
        model(2, 1, (None, None), end=5),
        model(3, 2, (None, 7), end=4),
        model(4, 3, (80, 6), end=3),
    )

    assert (run.input_tokens, run.output_tokens, len(run.model_calls)) == (80, 13, 1)


def test_it_takes_the_name_of_whichever_knows() -> None:
    run = run_of(
        agent(1), asking(ModelFacts(), 2, 1, end=5), model(3, 2, called="model-2", start=1)
    )

    assert [call.model for call in run.model_calls] == ["model-2"]


@pytest.mark.parametrize("between", [agent(3, 2, "inner", end=4), tool(3, 2, "ask", end=4)])
def test_with_an_agent_or_a_tool_between_there_are_two(between: AgentSpan) -> None:
    """Some frameworks put sub-agents and tools below the model call that asked for them."""
    run = run_of(
        agent(1, end=9), model(2, 1, (100, 10), end=5), between, model(4, 3, (50, 5), start=1)
    )

    assert (run.input_tokens, len(run.model_calls)) == (150, 2)


def twins(
    first: tuple[int | None, int | None],
    second: tuple[int | None, int | None],
    start: float = 1.2,
    end: float = 2.8,
) -> Run:
    """Two model calls side by side, told by an instrumentation and by the client itself."""
    one = model(2, 1, first, start=1, end=3, scope="instrumentation")
    return run_of(agent(1, end=9), one, model(3, 1, second, scope="client", start=start, end=end))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((100, 10), (100, 10)),
        ((100, 10), (None, None)),
        ((None, 10), (100, None)),
        ((None, None), (100, 10)),
    ],
)
def test_twins_of_two_scopes_are_one_call(
    first: tuple[int | None, int | None], second: tuple[int | None, int | None]
) -> None:
    """One in time within the other under one parent, with no differing counts: a client that traces
    itself.
    """
    run = twins(first, second)

    assert (run.input_tokens, run.output_tokens, len(run.model_calls)) == (100, 10, 1)


def test_twins_that_differ_are_two_calls() -> None:
    assert len(twins((100, 10), (90, 10)).model_calls) == 2
    assert len(twins((100, 10), (100, 10), start=2, end=4).model_calls) == 2


def test_siblings_of_one_scope_are_two_calls() -> None:
    """An agent may ask two models at once."""
    run = run_of(
        agent(1, end=9),
        model(2, 1, (100, 10), start=1, end=3),
        model(3, 1, (100, 10), start=1, end=3),
    )

    assert (run.input_tokens, len(run.model_calls)) == (200, 2)


def test_without_a_common_parent_nothing_is_a_twin() -> None:
    """Two tops of lost work may hang anywhere."""
    lost = [model(3, 2, (9, 1), end=3, scope="a"), model(4, 2, (9, 1), start=0.5, end=2, scope="b")]

    assert len(run_of(*lost).model_calls) == 2


# --- The agents' own totals -----------------------------------------------------------------------


def test_an_agents_totals_count_where_no_model_call_tells_any() -> None:
    """Never added to the model calls' own, which they sum."""
    assert tokens_of(totals((100, 10), 1), model(2, 1, (None, None))) == (100, 10)
    assert tokens_of(totals((100, 10), 1), model(2, 1, (100, 10))) == (100, 10)


def test_of_a_chain_of_one_name_the_outermost_totals_count() -> None:
    """The same invocation told twice tells its totals twice."""
    assert tokens_of(totals((100, 10), 1), totals((100, 10), 2, 1)) == (100, 10)
    assert tokens_of(totals(None, 1), totals((100, 10), 2, 1)) == (100, 10)


def test_an_agent_and_the_agent_it_called_add_up() -> None:
    spans = [totals((100, 10), 1, None, "outer"), totals((50, 5), 2, 1, "inner"), tool(3, 2)]

    assert tokens_of(*spans) == (150, 15)
    assert [run.input_tokens for run in rebuilt(*spans)] == [150, 50]


def test_a_workflow_without_totals_has_those_of_its_agents() -> None:
    assert tokens_of(
        workflow(1, end=9), totals((100, 10), 2, 1, "one"), totals((50, 5), 3, 1, "two")
    ) == (150, 15)


def test_costs_add_up_where_each_call_has_one() -> None:
    calls = [asking(ModelFacts(cost=0.25), 2, 1), asking(ModelFacts(cost=0.5), 3, 1)]

    assert run_of(agent(1), *calls).cost == 0.75
    assert run_of(agent(1), *calls, model(4, 1)).cost is None
    assert run_of(agent(1)).cost is None


def test_the_cost_of_a_call_within_a_call_counts_once() -> None:
    outer = asking(ModelFacts(tokens=Tokens(10, 1)), 2, 1, end=5)
    inner = [
        asking(ModelFacts(cost=0.25, tokens=Tokens(5, 1)), number, 2, start=number)
        for number in (3, 4)
    ]

    assert run_of(agent(1, end=9), outer, *inner).cost == 0.5
    assert run_of(agent(1, end=9), asking(ModelFacts(cost=2.0), 2, 1, end=5), *inner).cost == 2.0
    unknown = model(4, 2, start=4)
    assert run_of(agent(1, end=9), outer, inner[0], unknown).cost is None


PRICED = ModelFacts("gpt-4o", tokens=Tokens(1_000_000, 100_000), provider="openai")


@pytest.mark.parametrize(
    ("facts", "cost"),
    [
        (PRICED, 2.5 + 1.0),
        (replace(PRICED, cost=9.0), 9.0),
        (replace(PRICED, cached=800_000), 0.5 + 1.0 + 1.0),
        (replace(PRICED, cached=2_000_000), 2.5 + 2.5 + 1.0),  # beside the input
        (replace(PRICED, tokens=Tokens(1_000_000, None)), None),
        (replace(PRICED, tokens=Tokens()), None),
        (replace(PRICED, model=None), None),
        (replace(PRICED, model="house-model", request_model="gpt-4o"), 3.5),
        (replace(PRICED, model="house-model"), None),
        (replace(PRICED, provider="ollama"), None),
    ],
)
def test_tokens_are_priced_where_no_cost_is_reported(facts: ModelFacts, cost: float | None) -> None:
    pytest.importorskip("genai_prices", reason="the prices extra is not installed")
    run = run_of(agent(1), asking(facts, 2, 1))

    assert run.cost == (None if cost is None else pytest.approx(cost))


def test_one_call_without_a_price_leaves_the_run_without_a_cost() -> None:
    unpriced = asking(ModelFacts("house-model", tokens=Tokens(1, 1)), 3, 1)

    assert run_of(agent(1), asking(PRICED, 2, 1), unpriced).cost is None


def test_nothing_is_estimated_where_that_is_switched_off() -> None:
    settings = Settings(estimate_cost=False)
    reported = asking(replace(PRICED, cost=9.0), 2, 1)

    assert run_of(agent(1), asking(PRICED, 2, 1), settings=settings).cost is None
    assert run_of(agent(1), reported, settings=settings).cost == 9.0


@pytest.mark.parametrize(("between", "calls"), [(3, 4), (4, 6)])
def test_a_call_of_another_scope_is_compared_with_the_last_four_siblings(
    between: int, calls: int
) -> None:
    """A long call of one scope, short ones of the same scope, then the same long call again as
    another scope tells it.
    """
    first = model(2, 1, (100, 10), end=90, scope="one")
    short = [
        model(10 + at, 1, (at, at), start=1 + at, end=2 + at, scope="one") for at in range(between)
    ]
    again = model(3, 1, (100, 10), start=20, end=80, scope="two")
    run = run_of(agent(1, end=99), first, *short, again)

    assert len(run.model_calls) == calls


def test_a_call_that_reports_no_input_at_all_reports_no_tokens() -> None:
    """Some instrumentations write 0 for a stream whose usage was not asked for."""
    run = run_of(agent(1, end=9), model(2, 1, (0, 0)), model(3, 1, (100, 7), start=4))

    assert (run.input_tokens, run.output_tokens) == (100, 7)
    assert flaws_of(run) == ("tokens_partial",)


@pytest.mark.parametrize(
    ("cached", "written", "whole"),
    [(1_000, 100, 1_120), (1_000, None, 1_020), (None, 100, 120), (15, 5, 20), (20, None, 20)],
)
def test_input_that_leaves_out_what_the_cache_held(
    cached: int | None, written: int | None, whole: int
) -> None:
    """The count of Anthropic and Bedrock, as instrumentations pass it on, of any model."""
    facts = ModelFacts("nova-pro", tokens=Tokens(20, 7), cached=cached, cache_written=written)
    run = run_of(agent(1), asking(facts, 2, 1))

    assert (run.input_tokens, run.model_calls[0].cached_tokens) == (whole, cached)


def test_one_of_two_layers_of_a_call_may_not_know_of_the_cache() -> None:
    """A framework's span around that of the provider's client."""
    blind = ModelFacts(tokens=Tokens(20, 7))
    knows = ModelFacts(tokens=Tokens(1_020, 7), cached=1_000)

    def inputs(outer: ModelFacts, inner: ModelFacts) -> list[int | None]:
        calls = asking(outer, 2, 1, end=9), asking(inner, 3, 2, start=1, end=8)
        return [call.input_tokens for call in run_of(agent(1, end=9), *calls).model_calls]

    assert inputs(blind, knows) == inputs(knows, blind) == [1_020]


def test_attempts_that_used_the_cache_do_not_add_to_the_input_of_their_call() -> None:
    call = ModelFacts(tokens=Tokens(1_000, 7))
    attempt = replace(call, cached=750)
    spans = [
        asking(facts, number, above, start=start, end=start + length)
        for facts, number, above, start, length in (
            (call, 2, 1, 0, 9),
            (attempt, 3, 2, 1, 3),
            (attempt, 4, 2, 5, 3),
        )
    ]

    found = run_of(agent(1, end=9), *spans)

    assert [one.input_tokens for one in found.model_calls] == [1_000]


def answered(number: int, start: float, response: str) -> AgentSpan:
    facts = ModelFacts(tokens=Tokens(100, 10), response_id=response)
    return replace(model(number, 1, start=start, end=start + 1), facts=facts)


def test_one_id_of_every_response_is_that_of_a_mock_where_a_tool_ran_between() -> None:
    """A replay goes on with another response; so does one that was only fetched."""
    ran = tool(3, 1, start=2, end=3)
    first, again, other = answered(2, 0, "r"), answered(4, 4, "r"), answered(5, 6, "s")
    assert tokens_of(agent(1, end=9), first, ran, again) == (200, 20)
    assert tokens_of(agent(1, end=9), first, again) == (100, 10)
    assert tokens_of(agent(1, end=9), first, ran, again, other) == (200, 20)


def one_after_another(*calls: ModelFacts) -> list[AgentSpan]:
    """Spans of model calls below the agent, with the numbers from 2 on."""
    return [
        asking(facts, number, 1, start=number, end=number + 1)
        for number, facts in enumerate(calls, 2)
    ]


def test_one_call_shows_for_all_of_its_model_that_the_cache_is_left_out() -> None:
    """3 tokens beside 5,000 of the cache: then 4,000 stand beside 1,000 too, of that model only."""
    first = ModelFacts("m", tokens=Tokens(3, 1), cached=5_000)
    later = ModelFacts("m", tokens=Tokens(4_000, 1), cached=1_000)
    other = ModelFacts("n", tokens=Tokens(700, 1), cached=600)
    calls = one_after_another(later, first, other)
    elsewhere = replace(asking(later, 5, 1, start=5, end=6), scope="another")
    found = run_of(agent(1, end=9), *calls, elsewhere)
    assert [one.input_tokens for one in found.model_calls] == [5_000, 5_003, 700, 4_000]
    alone = run_of(agent(1, end=9), calls[0])
    assert [one.input_tokens for one in alone.model_calls] == [4_000]


def test_reasoning_that_is_more_than_the_output_stands_beside_it() -> None:
    """As Gemini counts it: 989 tokens of reasoning beside an answer of 104. One such call shows it
    for all of its model; where it never is more, it is a part of the output.
    """
    short = ModelFacts("m", tokens=Tokens(100, 104), reasoned=989)
    long = ModelFacts("m", tokens=Tokens(100, 500), reasoned=300)
    other = ModelFacts("n", tokens=Tokens(100, 500), reasoned=300)
    calls = one_after_another(long, short, other)
    found = run_of(agent(1, end=9), *calls)
    assert [one.output_tokens for one in found.model_calls] == [800, 1_093, 500]
    assert (found.input_tokens, found.output_tokens) == (300, 2_393)
