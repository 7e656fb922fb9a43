"""A bundle whose run was told lays its rows down as bytes, and is the same for whoever looks."""

from __future__ import annotations

import pickle
from itertools import count

import pytest
from hypothesis import given

from otel_reliability.assembly import compiled
from otel_reliability.assembly.assembler import Assembler
from otel_reliability.assembly.bundle import Bundle, ids_of
from otel_reliability.assembly.bundles import MOST_AT_REST
from otel_reliability.assembly.rows import Models, Tools
from otel_reliability.config import Settings
from otel_reliability.model.event import RunChange
from otel_reliability.model.packed import Packed
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan, Call, Kind, ModelFacts, Tokens
from otel_reliability.testing import agent, agent_span, model, run, tool
from tests.assembly.rebuilding import blocks_of
from tests.assembly.test_bundles import plain_runs

pytestmark = pytest.mark.skipif(compiled.NATIVE is None, reason="the compiled module (native/) is not installed")

ASKING = ModelFacts("m", None, Tokens(5, 1), True, True, (Call("search", "1", b"hash"), Call(None)), 900, 0.25, "r")
"""A model call that says all that few do."""
ODD = Call("search", effect=b"effect", result=b"result", failed=True)


def bundle_of(spans: list[AgentSpan]) -> Bundle:
    """What holds the spans of a trace, each at a time of its own."""
    bundle = Bundle(spans[0].trace_id, 0.0)
    for now, span in enumerate(spans):
        bundle.mark(float(now))
        bundle.keep(span)
    return bundle


def told(spans: list[AgentSpan]) -> Bundle:
    """The same when its run was told."""
    bundle = bundle_of(spans)
    bundle.close(run(), spans[0], 9.0)
    return bundle


def rest_of(bundle: Bundle) -> Packed | None:
    """What lies in it now: a look at its rows changes that."""
    return bundle.rest


@given(plain_runs())
def test_its_spans_are_what_they_were(spans: list[AgentSpan]) -> None:
    """In the order, and at the times, in which they came; and how many they are, and what they weigh, without a look at them."""
    spans = [span for span in spans if span.trace_id == spans[0].trace_id]
    awake, asleep = bundle_of(spans), told(spans)

    assert rest_of(asleep) is not None
    assert (asleep.count, asleep.weight) == (awake.count, awake.weight)
    assert ids_of(asleep.past()) == set(awake.ids)
    assert rest_of(asleep) is not None
    assert [(now, list(some)) for now, some in asleep.story()] == [(now, list(some)) for now, some in awake.story()]
    assert rest_of(asleep) is None
    assert (asleep.models, asleep.tools) == (awake.models, awake.tools)
    assert (asleep.models.standing, asleep.tools.standing) == (awake.models.standing, awake.tools.standing)
    assert (asleep.count, ids_of(asleep.past())) == (awake.count, set(awake.ids))


def test_what_few_say_is_kept() -> None:
    """Calls that a model asked for, limits, costs, and effects of tool calls."""
    spans = [agent(1), agent_span(Kind.MODEL, ASKING, 2, 1), model(3, 1), tool(4, 1, "search", result=ODD.result)]
    bundle = told(spans)

    assert rest_of(bundle) is not None
    assert sorted(bundle.spans(), key=lambda span: span.span_id) == spans
    facts = [span.facts for span in bundle.spans() if span.span_id == spans[1].span_id]
    assert facts == [ASKING]
    assert isinstance(facts[0], ModelFacts)
    assert all(isinstance(call, Call) for call in facts[0].calls)


def test_it_is_found_by_its_ids_again() -> None:
    """An index is made anew for whoever asks."""
    spans = [agent(1), model(2, 1), tool(3, 1, "search")]
    bundle = bundle_of(spans)
    bundle.make_index()
    bundle.close(run(), spans[0], 9.0)
    assert bundle.index is None

    bundle.make_index()
    assert [bundle.find(span.span_id) for span in spans] == spans


def test_it_is_written_down_at_rest() -> None:
    """A checkpoint neither wakes it nor holds more than its bytes."""
    spans = [agent(1), model(2, 1), tool(3, 1, "search")]
    bundle = told(spans)
    again: Bundle = pickle.loads(pickle.dumps(bundle))

    assert rest_of(bundle) is not None
    assert rest_of(again) == rest_of(bundle)
    assert list(again.spans()) == list(bundle.spans())
    awake: Bundle = pickle.loads(pickle.dumps(bundle))
    assert rest_of(awake) is None
    assert list(awake.spans()) == list(bundle.spans())


def test_one_that_cannot_be_laid_down_grows_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception out of nowhere (no memory, a signal handler's) on the way leaves a bundle that can be closed again."""

    def fail(*_: object) -> None:
        raise MemoryError

    spans = [agent(1), model(2, 1), tool(3, 1, "search")]
    assembler = Assembler(Settings())
    assembler.add_all(spans, 0.0)
    levels = assembler.levels
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "lay_down", fail)
        with pytest.raises(MemoryError):
            assembler.tick(100.0)

    assert assembler.levels == levels
    assert [event.change for event in assembler.close_all(CloseReason.SHUTDOWN, 100.0)] == [
        RunChange.CLOSED,
        RunChange.SETTLED,
    ]
    assert assembler.accounts["used", ""] == len(spans)


@pytest.mark.parametrize(
    "odd",
    [
        tool(3, 1, "search")._replace(span_id=b"short"),
        tool(3, 1, "search")._replace(start_ns=1 << 63, end_ns=1 << 64),
        tool(3, 1, "search", call_id="half of a character: \ud800"),
    ],
)
def test_what_has_no_place_in_bytes_stays_as_it_is(odd: AgentSpan) -> None:
    """Ids of another length than they should have, numbers of more than eight bytes, and texts that are none."""
    bundle = told([agent(1), model(2, 1), odd])

    assert rest_of(bundle) is None
    assert bundle.find(odd.span_id) is None
    assert list(bundle.spans()) == [model(2, 1), odd, agent(1)]
    assert ids_of(bundle.past()) == {agent(1).span_id, model(2, 1).span_id, odd.span_id}


def test_a_look_that_is_interrupted_costs_nobody_his(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that it came upon is looked at a little later, the others as if nothing had happened."""
    assembler, lay_down, asked = Assembler(Settings()), compiled.lay_down, count()

    def fail_once(models: Models, tools: Tools) -> Packed | None:
        if next(asked) == 1:
            raise MemoryError
        return lay_down(models, tools)

    for trace in range(1, 5):
        spans = [agent(1, trace=trace), model(2, 1, trace=trace), tool(3, 1, "search", trace=trace)]
        assembler.add_all(spans, 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "lay_down", fail_once)
        with pytest.raises(MemoryError):
            assembler.tick(100.0)
        changes = [event.change for now in (100.0, 110.0, 500.0) for event in assembler.tick(now)]

    assert assembler.open_runs == 0
    assert changes == [RunChange.CLOSED] * 4 + [RunChange.SETTLED] * 4
    assert (assembler.accounts["used", ""], assembler.accounts["closed", CloseReason.ROOT.value]) == (12, 4)


def test_a_long_trace_goes_on_in_lists() -> None:
    """To join each request to all that came before would copy all of it each time."""
    assembler = Assembler(Settings())
    for number in range(2, MOST_AT_REST + 20):
        assembler.add_all(blocks_of([tool(number, 1, "search", start=float(number))]), 0.0)
    (bundle,) = assembler._gathering.traces.bundles.values()

    assert rest_of(bundle) is None
    assert bundle.count == MOST_AT_REST + 18


@pytest.mark.parametrize("closed_at", [3.34, 0.1, 7.77, 1234.567])
def test_it_settles_at_the_moment_that_was_told(closed_at: float) -> None:
    """`reopen` after it was closed, as floats add: whoever ticks just then misses nothing."""
    assembler = Assembler(Settings())
    assembler.add_all([agent(1), model(2, 1)], closed_at - 9.0)
    assembler.tick(closed_at)
    told = assembler.tick(closed_at + Settings().assembly.reopen)

    assert [event.change for event in told][-1] is RunChange.SETTLED
