"""Blocks are the spans they hold, whoever asks, and whatever a bundle adds to them; an engine makes the same of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.assembly import assembler
from otel_reliability.assembly.assembler import Assembler
from otel_reliability.assembly.beginning import begun
from otel_reliability.assembly.blocks import Block, Blocks
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.bundles import Bundles
from otel_reliability.assembly.compiled import NATIVE
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.engine import STRIDE, Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan, Evaluation, Notes
from otel_reliability.testing import FakeClock, agent, model, other, tool
from tests.assembly.rebuilding import blocks_of
from tests.assembly.test_bundles import plain_runs
from tests.laws.arrival import READER, SETTINGS, Told, after, flushed, schedules, waited
from tests.laws.arrival import read as read_spans
from tests.laws.telemetry import cases

RUN = (model(2, 1, start=0.1, end=0.2), tool(3, 1, "search", start=0.3, end=0.4), agent(1))


@given(plain_runs(), plain_runs())
def test_they_are_a_sequence_of_spans(one: list[AgentSpan], two: list[AgentSpan]) -> None:
    """Each of them once, with a length, places, and equality to any other sequence."""
    spans = [*one, *two, other(90)]
    blocks = blocks_of(spans)
    found = list(blocks)

    assert sorted(found, key=repr) == sorted(spans, key=repr)
    assert len(blocks) == len(spans)
    assert blocks[0] == found[0]
    assert blocks[1:] == tuple(found[1:])
    assert blocks == found == blocks == tuple(found)
    assert blocks != found[1:]
    assert blocks != "spans"
    assert blocks != 7
    assert repr(found[-1]) in repr(blocks)
    assert blocks.end_ns == found[-1].end_ns
    assert sorted(blocks.others(), key=repr) == sorted(
        [*(span for block in blocks.blocks for span in block.others), *blocks.rest], key=repr
    )


def test_there_may_be_none() -> None:
    """Then nothing ended."""
    assert (len(Blocks(())), list(Blocks(())), Blocks(()).end_ns) == (0, [], 0)


@given(st.lists(st.integers(1, 9), max_size=9), st.integers(0, 9), st.integers(1, 12))
def test_they_can_be_taken_in_parts(sizes: list[int], places: int, least: int) -> None:
    """Each of at least so many spans but the last, and of fewer than one block more."""
    spans = [tool(at + 2, 1, "search", trace=trace) for trace, size in enumerate(sizes, 1) for at in range(size)]
    blocks = blocks_of([*spans, *(other(at + 1, trace=99) for at in range(places))])
    parts = list(blocks.parts(least))

    assert [span for part in parts for span in part] == list(blocks)
    assert all(least <= len(part) < 2 * least + 9 for part in parts[:-1])
    assert 0 < len(parts[-1]) < 2 * least + 9 or not blocks


def test_blocks_hold_what_they_held() -> None:
    """A bundle adds to the lists of a block. The block goes on to tell its own spans, and gives copies to the next bundle."""
    blocks = blocks_of(RUN)
    first, second = (Assembler(Settings()) for _ in range(2))
    first.add_all(blocks, 0.0)
    for number in (4, 5):
        first.add_all(blocks_of([model(number, 1), tool(number + 10, 1, "book"), agent(number + 20, 1)]), 1.0)
    second.add_all(blocks, 0.0)

    assert list(blocks) == list(RUN)
    assert [len(list(one._gathering.spans())) for one in (first, second)] == [9, 3]
    assert blocks.end_ns == RUN[-1].end_ns


def test_the_same_blocks_may_come_twice() -> None:
    """They are duplicates then, as their spans would be."""
    blocks, found = blocks_of(RUN), Assembler(Settings())
    for now in (0.0, 0.0, 1.0):
        found.add_all(blocks, now)
    found.close_all(CloseReason.SHUTDOWN, 2.0)

    assert list(blocks) == list(RUN)
    assert found.accounts["duplicate", ""] == 6
    assert found.accounts["used", ""] == 3


def test_rows_end_when_the_last_of_them_did() -> None:
    """Where there is nothing but model calls, or tool calls."""
    assert blocks_of(RUN[:1]).end_ns == RUN[0].end_ns
    assert blocks_of(RUN[:2]).end_ns == RUN[1].end_ns


@given(st.data())
def test_an_engine_makes_the_same_of_them(data: st.DataObject) -> None:
    """Runs, readings, settled runs and accounts, with whatever comes in whatever order, twice, and in whatever requests."""
    case = data.draw(cases(hostile=data.draw(st.booleans())))
    told = read_spans([*case.everything, *case.evaluations])
    twice = data.draw(st.lists(st.sampled_from(told), max_size=5)) if told else []
    arrivals = data.draw(schedules([*told, *twice]))

    assert story_of(arrivals, in_blocks=True) == story_of(arrivals, in_blocks=False)


@given(st.data())
def test_their_order_decides_nothing_in_the_end(data: st.DataObject) -> None:
    """Blocks tell spans in another order than that in which they came, which may decide when a run closes, but not what it is:
    the lesser of two versions of a span, where it comes first, has its trace gathered again, and all of it lingers anew.
    """
    case = data.draw(cases(hostile=data.draw(st.booleans())))
    told = read_spans([*case.everything, *case.evaluations])
    twice = data.draw(st.lists(st.sampled_from(told), max_size=5)) if told else []
    arrivals = data.draw(schedules([*told, *twice]))
    end = data.draw(st.sampled_from((flushed, waited)))

    found, expected = after(arrivals, end=end, in_blocks=True), after(arrivals, end=end)

    assert found._replace(changes=()) == expected._replace(changes=())


def story_of(arrivals: Sequence[tuple[float, Sequence[Told]]], *, in_blocks: bool) -> Any:
    """All that an engine tells."""
    clock = FakeClock()
    engine = Engine(SETTINGS, clock=clock, wall=clock.wall, reader=READER)
    events: list[Any] = []
    engine.observers.append(lambda event, now: events.append((now, event)))
    for seconds, batch in [*arrivals, *((5.0, ()) for _ in range(40))]:
        clock.advance(seconds)
        engine.tick()
        spans = [one for one in batch if isinstance(one, AgentSpan)]
        blocks = blocks_of(spans)
        engine.receive(blocks if in_blocks else list(blocks))
        engine.receive_evaluations([one for one in batch if isinstance(one, Evaluation)])
    engine.flush(CloseReason.END_OF_INPUT)
    readings = {
        (key, name): dict(window.readings())
        for key in engine.fleet.keys()  # noqa: SIM118 (no dictionary)
        if (state := engine.fleet.agent(key)) is not None
        for name, window in state.windows.items()
    }
    accounts = {key: number for key, number in engine.accounts.items() if number}
    return sorted(events, key=repr), readings, sorted(engine.take_settled()), accounts, engine.refused_evidence


def test_an_engine_counts_what_they_say() -> None:
    """How many came, what could not stand, and when the last of them ended."""
    notes = Notes(refused=(("reliability.success", "no boolean"),))
    clock = FakeClock()
    engine = Engine(Settings(), clock=clock, wall=lambda: 10 * 10**9)
    engine.receive(blocks_of([*RUN[:2], agent(1, notes=notes, end=4.0)]))

    assert engine.accounts["received", ""] == 3
    assert engine.refused_evidence == {("reliability.success", "no boolean"): 1}
    assert engine.event_lag >= 0


def test_ceilings_are_held_within_a_request() -> None:
    """However many blocks come at once."""
    settings = Settings(assembly=AssemblySettings(open_runs=10))
    engine = Engine(settings, clock=FakeClock())
    spans = [one._replace(trace_id=number.to_bytes(16)) for number in range(1, 1 + 2 * STRIDE // 3) for one in RUN]
    engine.receive(blocks_of(spans))

    assert engine.open_runs < len(spans) // 3 - STRIDE // 4
    assert engine.accounts["received", ""] == len(spans)


def test_a_trace_too_large_is_taken_span_by_span() -> None:
    """As the limit wants it."""
    settings = Settings(assembly=AssemblySettings(span_limit=3))
    one, other = (Assembler(settings) for _ in range(2))
    spans = [*RUN, *(tool(at, 1, "search") for at in range(4, 9))]
    one.add_all(blocks_of(spans), 0.0)
    other.add_all(list(blocks_of(spans)), 0.0)

    assert one.close_all(CloseReason.SHUTDOWN, 1.0) == other.close_all(CloseReason.SHUTDOWN, 1.0)
    assert one.accounts == other.accounts


@pytest.mark.parametrize("interrupted", [0, 4, 9])
def test_an_exception_out_of_nowhere_costs_no_other_block(monkeypatch: pytest.MonkeyPatch, interrupted: int) -> None:
    """A signal handler raises when Python has taken a block in: those after it, and the rest, are not lost."""
    adopt, adopted = Bundles.adopt, count()

    def raising(self: Bundles, block: Block, now: float) -> bool:
        taken = adopt(self, block, now)
        if next(adopted) == interrupted:
            raise KeyboardInterrupt
        return taken

    monkeypatch.setattr(Bundles, "adopt", raising)
    monkeypatch.setattr(assembler, "usual_of", one_by_one)
    engine = Engine(Settings(), clock=FakeClock())
    spans = [one._replace(trace_id=bytes([number] * 16)) for number in range(1, 11) for one in RUN]
    with pytest.raises(KeyboardInterrupt):
        engine.receive(blocks_of([*spans, other(90)]))
    engine.flush(CloseReason.SHUTDOWN)

    assert len(engine.take_settled()) == 10
    assert engine.accounts == {("received", ""): 31, ("used", ""): 30, ("other", "no_convention"): 1}


def one_by_one(*_: object) -> None:
    """Nothing does so with many."""


@pytest.mark.parametrize("limit", [2, 4, 8, 9, 10, 11])
def test_of_a_trace_too_large_those_count_that_ended_first(limit: int) -> None:
    """However its rows stand: senders send what has ended, and there was no other order before there were blocks."""
    settings = Settings(assembly=AssemblySettings(span_limit=limit))
    calls = [model(at, 1, end=at / 10) if at % 2 else tool(at, 1, "search", end=at / 10) for at in range(2, 11)]
    spans = [*calls, agent(1, end=1.0)]
    one, other = (Assembler(settings) for _ in range(2))
    one.add_all(blocks_of(spans), 0.0)
    other.add_all(spans, 0.0)

    assert one.close_all(CloseReason.SHUTDOWN, 1.0) == other.close_all(CloseReason.SHUTDOWN, 1.0)
    assert one.accounts == other.accounts


@pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")
def test_a_block_is_adopted_as_it_is() -> None:
    """Its rows stay the bytes they are."""
    found, (block,) = Assembler(Settings()), blocks_of(RUN).blocks
    found.add_all(Blocks([block]), 0.0)
    (bundle,) = found._gathering.traces.bundles.values()

    assert block.rest is not None
    assert bundle.rest is block.rest
    assert bundle.count == block.count == 3


def test_rows_that_have_no_place_in_bytes_stay_awake() -> None:
    """Times of more than eight bytes: the block tells them as they are, and whoever takes it over adds to lists of its own."""
    odd = model(2, 1)._replace(start_ns=1 << 70, end_ns=1 << 71)
    blocks = blocks_of([odd, *RUN[1:]])
    (block,) = blocks.blocks
    first, second = (Assembler(Settings()) for _ in range(2))
    first.add_all(blocks, 0.0)
    first.add_all(blocks_of([model(4, 1), tool(5, 1, "book")]), 0.0)
    second.add_all(Blocks([block.beside(block.others)]), 0.0)

    assert block.rest is None
    assert list(blocks) == [odd, *RUN[1:]]
    assert (block.count, block.end_ns) == (3, RUN[2].end_ns)
    assert [len(list(one._gathering.spans())) for one in (first, second)] == [5, 3]
    assert [len(one.close_all(CloseReason.SHUTDOWN, 1.0)) for one in (first, second)] == [2, 2]


def test_a_bundle_begins_with_a_block() -> None:
    """Whoever makes it, each slot holds the same, or nothing."""
    (block,) = blocks_of([*RUN, agent(9)]).blocks
    found, plain = begun(block, 3.0), Bundle(block.trace_id, 3.0, block)
    for name in Bundle.__slots__:
        assert getattr(found, name, "nothing") == getattr(plain, name, "nothing"), name
    assert found.others is not block.others
    assert list(found.spans()) == list(block)


@pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")
def test_what_is_no_bundle_is_not_begun() -> None:
    """Its parts are others than the compiled module knows."""
    for odd in (block_like(), (), 7):
        with pytest.raises((TypeError, AttributeError)):
            NATIVE.Beginner(odd, Block)


def block_like() -> Block:
    """Something with slots that is no bundle."""
    return blocks_of(RUN).blocks[0]
