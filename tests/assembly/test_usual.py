"""What nearly every bundle goes through, by the compiled module: it leaves all as Python leaves it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_reliability.assembly import bundles, compiled, judged
from otel_reliability.assembly.assembler import Assembler
from otel_reliability.assembly.beginning import BEGINNER
from otel_reliability.assembly.blocks import Block, Blocks
from otel_reliability.assembly.build import Builder
from otel_reliability.assembly.bundle import Bundle, Past, State
from otel_reliability.assembly.compiled import NATIVE
from otel_reliability.assembly.simple import SimpleBuilder, top_of
from otel_reliability.assembly.unit import Place
from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.model.event import RunEvent
from otel_reliability.model.run import AgentKey, CloseReason
from otel_reliability.model.span import AgentSpan, Evaluation, InvocationFacts, Kind, Notes, Session, TraceId
from otel_reliability.testing import agent, agent_span, model, other, span_id, tool, trace_id
from tests.assembly.rebuilding import blocks_of

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

TIMES: Final = AssemblySettings(linger=2.0, idle_timeout=12.0, reopen=9.0, remember=60.0)
TIGHT: Final = AssemblySettings(
    linger=2.0, idle_timeout=12.0, reopen=9.0, remember=30.0, span_limit=4, closed_ids=60, other_spans=5, open_runs=20
)
RUN: Final = (agent(1), model(2, 1, start=0.1, end=0.2), tool(3, 1, "search", start=0.3, end=0.4))
ODD: Final[tuple[Callable[[AgentSpan], list[AgentSpan]], ...]] = (
    lambda root: [],
    lambda root: [root],
    lambda root: [root, other(7, 1)],
    lambda root: [root, other(7, 1)._replace(session=Session(1, "s"))],
    lambda root: [root._replace(parent_id=span_id(8), parent_remote=True)],
    lambda root: [root._replace(parent_id=span_id(8), parent_remote=False)],
    lambda root: [root._replace(parent_id=span_id(8)), other(8)],
    lambda root: [root._replace(notes=Notes(task_id="task"))],
    lambda root: [root._replace(evaluations=(Evaluation("success", 1.0, None, 1),))],
    lambda root: [root._replace(facts=InvocationFacts("support", expects_finish=True))],
    lambda root: [root._replace(start_ns=1 << 70, end_ns=1 << 71)],
    lambda root: [root._replace(span_id=b"short")],
    lambda root: [root, root],
    lambda root: [root, agent(5, 1, "billing")],
    lambda root: [root, agent(5)],
    lambda root: [root, model(5, 1)._replace(start_ns=1 << 70, end_ns=1 << 71)],
    lambda root: [root, tool(5, None, "far")._replace(link=(trace_id(1), span_id(3)))],
    lambda root: [root, agent_span(Kind.RETRIEVAL, None, 5, 1)],
    lambda root: [root, model(2, 1, start=0.1, end=0.7)],
    lambda root: [root, *(tool(at, 1, "book", start=float(at), end=at + 0.5) for at in range(10, 150))],
)


def spans_of(dice: Random, number: int) -> list[AgentSpan]:
    """Of a trace: mostly those of a usual run, now and then a part of them, or something else."""
    spans = [
        *RUN,
        *(tool(at, 1, dice.choice("ab"), start=float(at), end=at + 0.5) for at in range(20, dice.randrange(20, 23))),
    ]
    if dice.random() < 0.3:
        spans[:1] = dice.choice(ODD)(spans[0])
    if dice.random() < 0.1:
        spans = spans[: dice.randrange(len(spans) + 1)]
    return [one._replace(trace_id=trace_id(number)) for one in spans]


def history(dice: Random, number: int) -> Iterator[Callable[[Assembler, float], list[RunEvent] | None]]:
    """What comes second by second: requests of new traces mostly, now and then of some that came before, and all else. Each
    gives what it tells, where it tells anything.
    """
    for second in range(number):
        traces = [1 + second * 4 + at for at in range(dice.randrange(5))]
        traces += [dice.randrange(1, 1 + second * 4 + 4) for _ in range(dice.choice((0, 0, 0, 1, 3)))]
        request, one = (
            blocks_of(span for trace in traces for span in spans_of(dice, trace)),
            trace_id(dice.choice([1, *traces])),
        )
        yield lambda assembler, now, told=request: assembler.add_all(told, now)
        chance, which = dice.random(), dice.choice((1, 3, 9))
        if chance < 0.05:
            yield lambda assembler, now, at=one, it=which: assembler.opened(at, span_id(it), None, now)
        elif chance < 0.1:
            yield lambda assembler, _, at=one, it=which: assembler.ended(at, span_id(it))
        elif chance < 0.2:
            told = Evaluation("success", 1.0, None, 1, one, span_id(which))
            yield lambda assembler, now, told=told: assembler.evaluate(told, now)
        elif chance < 0.22:
            yield lambda assembler, now, at=one: assembler.complete([at], CloseReason.END_OF_INPUT, now)
        elif chance < 0.23:
            yield lambda assembler, now: assembler.close_all(CloseReason.FLUSH, now)


def of_bundle(bundle: Bundle) -> object:
    """All that it holds. Its rows may lie at rest or not, which stay as they are, and its ids may have been laid down or not."""
    names = [name for name in Bundle.__slots__ if name not in {"_models", "_tools", "rest", "told_ids", "unit"}]
    models, tools = (bundle._models, bundle._tools) if bundle.rest is None else compiled.wake(bundle.rest)
    return list(models), list(tools), [(name, getattr(bundle, name)) for name in names]


def everything(assembler: Assembler) -> tuple[object, ...]:
    """All that an assembler remembers, in its order."""
    gathering, settled = assembler._gathering, assembler._settled
    pasts: dict[TraceId, Past] = gathering.traces.pasts
    return (
        [of_bundle(bundle) for bundle in gathering.traces.bundles.values()],
        list(gathering.traces),
        list(pasts.items()),
        list(gathering.quiet.items()),
        [one.trace_id if isinstance(one, Bundle) else one.trace.id for one in gathering.open],
        [(at, one.trace_id if isinstance(one, Bundle) else one.trace.id) for at, one in assembler._closed],
        [(due, [bundle.trace_id for bundle in bundles]) for due, bundles in assembler._looks],
        [(due, one.trace_id if isinstance(one, Bundle) else one.trace.id) for due, _, one in sorted(assembler._due)],
        list(settled.by_trace.items()),
        settled._count,
        assembler.accounts,
        assembler.levels,
    )


@given(st.integers(0, 2**32), st.sampled_from((TIMES, TIGHT)), st.sampled_from((0.5, 1.0, 1.0)))
@settings(max_examples=40)
def test_all_is_left_as_python_leaves_it(seed: int, times: AssemblySettings, pace: float) -> None:
    """Whatever comes, in whatever order, and however the clock goes: the same is told at the same time, and remembered."""
    ours, oracle = (Assembler(Settings(assembly=times)) for _ in range(2))
    oracle._usual = None
    dice, now = Random(seed), 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judged, "MOST", 40)
        for step in history(dice, 60):
            assert step(ours, now) == step(oracle, now)
            assert everything(ours) == everything(oracle)
            now += dice.choice((pace, pace, pace, 0.0, 20.0, -0.5))
            assert ours.tick(now) == oracle.tick(now)
            assert everything(ours) == everything(oracle)
        assert ours.close_all(CloseReason.SHUTDOWN, now) == oracle.close_all(CloseReason.SHUTDOWN, now)
    assert everything(ours) == everything(oracle)


def looked_at(bundle: Bundle, span_id: bytes) -> bool:
    """Nobody knows without a look."""
    return False


@given(st.integers(0, 2**32), st.sampled_from((TIMES, TIGHT)), st.sampled_from((0.5, 1.0, 1.0)))
@settings(max_examples=40)
def test_places_are_kept_as_with_a_look_at_all_spans(seed: int, times: AssemblySettings, pace: float) -> None:
    """Other spans, of bundles at rest: the same is told at the same time, and counted."""
    ours, oracle = (Assembler(Settings(assembly=times)) for _ in range(2))
    dice, now = Random(seed), 0.0
    for step in history(dice, 60):
        told = step(ours, now)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bundles, "_is_surely_new", looked_at)
            assert step(oracle, now) == told
        now += dice.choice((pace, pace, pace, 0.0, 20.0, -0.5))
        assert ours.tick(now) == oracle.tick(now)
        assert (ours.accounts, ours.levels) == (oracle.accounts, oracle.levels)
    assert ours.close_all(CloseReason.SHUTDOWN, now) == oracle.close_all(CloseReason.SHUTDOWN, now)
    assert (ours.accounts, ours.levels) == (oracle.accounts, oracle.levels)


@pytest.mark.parametrize(("calls", "looks"), [(100, bundles.FEW_PLACES), (200, 0)])
def test_many_places_are_not_sought_one_by_one(monkeypatch: pytest.MonkeyPatch, calls: int, looks: int) -> None:
    """A trace may have thousands of other spans beside hundreds of calls: they are indexed, once."""
    assembler, sought = Assembler(Settings(assembly=TIMES)), list[bytes]()
    assembler.add_all(blocks_of([RUN[0], *(model(2 + at, 1) for at in range(calls))]), 0.0)

    def seek(rest: Any, others: list[AgentSpan], one: bytes) -> int:
        sought.append(one)
        return compiled.seek(rest, others, one)

    monkeypatch.setattr(bundles, "seek", seek)
    assembler.add_all([other(1_000 + at, 1) for at in range(500)], 0.0)
    (bundle,) = assembler._gathering.traces.bundles.values()
    assert (len(bundle.places or ()), len(sought)) == (500, looks)
    assert bundle.index is not None


@pytest.mark.parametrize("when", [0.0, 1.0, 3.0])
def test_a_run_below_a_request_is_usual(when: float) -> None:
    """Whether the span of the web server comes with its agent, after it, or is in another process and never does."""
    assembler, web = Assembler(Settings(assembly=TIMES)), other(8)
    below = [one._replace(parent_id=web.span_id, parent_remote=when > 2) if one is RUN[0] else one for one in RUN]
    assembler.add_all(blocks_of(below if when else [*below, web]), 0.0)
    if 0 < when < 2:
        assembler.add_all([web], when)
    (bundle,) = assembler._gathering.traces.bundles.values()
    assert bundle.rest is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimpleBuilder, "at_once", None)
        (told,) = assembler.tick(4.0)
    assert told.run.span_count == len(RUN)
    assert (bundle.rest is not None, bundle.missing) == (True, web.span_id if when > 2 else None)


def request(first: int, number: int) -> Blocks:
    """So many usual runs."""
    return blocks_of(one._replace(trace_id=trace_id(trace)) for trace in range(first, first + number) for one in RUN)


def test_the_usual_is_done_here() -> None:
    """Else nothing would be compared. All that is made is held as often as what Python makes."""
    ours, oracle = (Assembler(Settings(assembly=TIMES)) for _ in range(2))
    usual, oracle._usual = ours._usual, None
    assert usual.begin(iter(request(1, 200).blocks), 0.0, ours._looks) is None
    oracle.add_all(request(1, 200), 0.0)
    ((_, left),) = ours._looks
    assert len(left) == 200
    left.reverse()
    assert not usual.close(left, 2.0, ours._closed, ours._events)
    assert (left, len(ours._events)) == ([], 200)
    assert [usual.settle(ours._closed, now, ours._events) for now in (10.9, 11.0, 11.0)] == [0, 200, 0]
    ours._looks.clear()
    told = ours._take_events()
    found, expected = (told[:200], told[200:]), (oracle.tick(2.0), oracle.tick(11.0))
    del told

    assert found == expected
    assert everything(ours)[2:] == everything(oracle)[2:]
    assert [held(events) for events in found] == [held(events) for events in expected]


def test_the_usual_needs_no_looks_for_garbage() -> None:
    """Nothing that it holds can lead back to it."""
    assembler = Assembler(Settings(assembly=TIMES))
    assembler.add_all(request(1, 1), 0.0)
    (bundle,) = assembler._gathering.traces.bundles.values()
    (event,) = assembler.tick(2.0)

    assert not any(map(gc.is_tracked, (bundle, bundle.others, event, assembler._closed[0])))
    assert hash(event) == hash(RunEvent(event.change, event.run))


def held(events: list[RunEvent]) -> list[list[int]]:
    """How often events, and what they tell, are held."""
    return [[sys.getrefcount(part) for part in (event, event.run, event.run.trace_id)] for event in events]


def test_what_is_not_usual_is_not_begun() -> None:
    """The block is given back, and those after it stay where they are."""
    assembler = Assembler(Settings(assembly=TIGHT))
    assembler.add_all(request(1, 1), 0.0)
    assembler.add_all([other(1, trace=2)], 0.0)
    assembler._bundles.unfold(assembler._gathering.traces.bundles[trace_id(2)])
    assembler._gathering.traces.pasts[trace_id(3)] = ("support", b"", None, None)
    awake = blocks_of([RUN[1]._replace(trace_id=trace_id(4), start_ns=1 << 70)]).blocks[0]
    many = blocks_of([*RUN, tool(4, 1, "a")]).blocks[0]
    before = everything(assembler)
    for odd in (request(1, 1).blocks[0], request(2, 1).blocks[0], request(3, 1).blocks[0], awake, many, "no block"):
        left: Any = iter([odd, *request(9, 1).blocks])
        assert assembler._usual.begin(left, 0.0, assembler._looks) is odd
        assert len(list(left)) == 1
    (usual,) = request(9, 1).blocks
    assert assembler._usual.begin(iter([usual]), -1.0, assembler._looks) is usual
    assert everything(assembler) == before
    assert assembler._usual.begin(iter([usual]), 0.0, assembler._looks) is None


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("open", {span_id(9): None}),
        ("places", {span_id(9): Place(None, None, Session(1, "s"))}),
        ("last_seen", 0.5),
        ("last_seen", 0),
        ("rest", None),
        ("others", list(RUN[:1] * 2)),
        ("others", [RUN[0]._replace(parent_id=span_id(9))]),
        ("others", [()]),
    ],
)
def test_what_is_not_usual_is_not_closed(slot: str, value: Any) -> None:
    """It stays at the end of the list, as it is; what was before it is closed."""
    assembler = Assembler(Settings(assembly=TIMES))
    assembler.add_all(request(1, 3), 0.0)
    ((_, left),) = assembler._looks
    if slot == "rest":
        left[1]._models, left[1]._tools = left[1].models, left[1].tools
    setattr(left[1], slot, value)

    assert assembler._usual.close(left, 2.0, assembler._closed, assembler._events) is False
    assert [bundle.trace_id for bundle in left] == [trace_id(1), trace_id(2)]
    assert [event.run.trace_id for event in assembler._events] == [trace_id(3)]
    assert assembler.accounts == {("used", ""): 3, ("closed", "root"): 1}


def test_of_what_no_usual_run_can_be_made_it_says_so() -> None:
    """Then nobody has to ask once more."""
    assembler = Assembler(Settings(assembly=TIMES))
    odd = [RUN[0]._replace(notes=Notes(task_id="task")), *RUN[1:]]
    assembler.add_all(blocks_of(odd), 0.0)
    ((_, left),) = assembler._looks

    assert assembler._usual.close(left, 2.0, assembler._closed, assembler._events) is True
    assert len(left) == 1
    assert assembler._usual.close(left, 2, assembler._closed, assembler._events) is False


@pytest.mark.parametrize(
    ("slot", "value"),
    [("told_ids", None), ("is_waiting", True), ("due", True), ("trace_id", trace_id(9)), ("others", [])],
)
def test_what_is_not_usual_is_not_settled(slot: str, value: Any) -> None:
    """Those before it are."""
    assembler = Assembler(Settings(assembly=TIMES))
    assembler.add_all(request(1, 3), 0.0)
    assembler.tick(2.0)
    setattr(assembler._closed[1][1], slot, value)

    assert assembler._usual.settle(assembler._closed, 50.0, assembler._events) == 1
    assert len(assembler._closed) == 2
    assert len(assembler._events) == len(assembler._gathering.traces.pasts) == 1


def test_runs_of_a_trace_that_settled_before_are_left_to_python() -> None:
    """They stand together."""
    assembler = Assembler(Settings(assembly=TIMES))
    assembler.add_all(request(1, 2), 0.0)
    (first, _) = assembler.tick(2.0)
    assembler._settled.remember(first.run)

    assert assembler._usual.settle(assembler._closed, 50.0, assembler._events) == 0
    assert assembler.tick(50.0)[0].run == first.run


def test_an_exception_out_of_nowhere_costs_no_other_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the maker asks for something. Each run is told once, and each span is counted once."""
    ask, asked = SimpleBuilder._key, count()

    def raising(self: SimpleBuilder, name: str, root: AgentSpan) -> AgentKey:
        if next(asked) == 4:
            raise KeyboardInterrupt
        return ask(self, name, root)

    monkeypatch.setattr(SimpleBuilder, "_key", raising)
    assembler = Assembler(Settings(assembly=TIMES))
    named = [
        [one._replace(trace_id=trace_id(at)) for one in (agent(1, called=f"agent{at}"), *RUN[1:])]
        for at in range(1, 10)
    ]
    assembler.add_all(blocks_of(span for spans in named for span in spans), 0.0)
    with pytest.raises(KeyboardInterrupt):
        assembler.tick(2.0)
    assert len(assembler._events) == 4
    told = [*assembler.tick(2.0), *assembler.tick(4.0)]

    assert [event.run.trace_id[-1] for event in told] == [1, 2, 3, 4, 6, 7, 8, 9, 5]
    assert assembler.accounts == {("used", ""): 27, ("closed", "root"): 9}
    assert assembler.levels["open_bytes"] == (0, TIMES.open_bytes)
    assert assembler.levels == fresh(named).levels


def test_an_exception_out_of_nowhere_before_the_first_bundle_costs_none() -> None:
    """They are looked at the next time."""

    class Raising(list[Bundle]):
        def __getitem__(self, at: Any) -> Any:
            raise KeyboardInterrupt

    assembler = Assembler(Settings(assembly=TIMES))
    assembler.add_all(request(1, 9), 0.0)
    ((due, bundles),) = assembler._looks
    assembler._looks[0] = due, Raising(bundles)
    with pytest.raises(KeyboardInterrupt):
        assembler.tick(2.0)
    ((_, left),) = assembler._looks
    assembler._looks[0] = due, list(left)

    assert len(assembler.tick(2.0)) == 9
    assert not assembler._looks


def fresh(named: list[list[AgentSpan]]) -> Assembler:
    """An assembler that has closed them and was not interrupted."""
    assembler = Assembler(Settings(assembly=TIMES))
    assembler.add_all(blocks_of(span for spans in named for span in spans), 0.0)
    assembler.tick(2.0)
    return assembler


def test_an_exception_out_of_nowhere_costs_no_other_block() -> None:
    """It comes while the next one is asked for."""

    class Raising(Iterator[Block]):
        def __init__(self, blocks: Iterator[Block]) -> None:
            self._blocks, self._asked = blocks, count()

        def __next__(self) -> Block:
            if next(self._asked) == 3:
                raise KeyboardInterrupt
            return next(self._blocks)

    assembler = Assembler(Settings(assembly=TIMES))
    left = Raising(iter(request(1, 9).blocks))
    with pytest.raises(KeyboardInterrupt):
        assembler._adopt_all(left, 0.0)
    assert assembler.levels["open_bytes"][0] == 3 * assembler._gathering.traces.bundles[trace_id(1)].weight
    assembler._adopt_all(left, 0.0)

    assert assembler.open_runs == 9
    assert len(assembler.tick(2.0)) == 9


def test_it_is_made_anew_where_an_assembler_is_read_again() -> None:
    """It is no part of what is kept."""
    assembler = Assembler(Settings(assembly=TIMES))
    state = assembler.__getstate__()
    assert state["_usual"] is None
    assembler.__setstate__(state)
    assembler.add_all(request(1, 9), 0.0)

    assert type(assembler._usual) is NATIVE.Usual
    assert len(assembler.tick(2.0)) == 9


def test_what_is_made_otherwise_is_not_touched() -> None:
    """Blocks, events and traces have other parts than the compiled module knows."""
    whole: list[Any] = [
        BEGINNER, tuple(State), (RunEvent, 1, 2), CloseReason.ROOT, (1, 2), (2.0, 9.0, 9), Builder(Settings()).simple.maker,
        top_of, Assembler(Settings())._gathering, Assembler(Settings())._settled, {},
    ]  # fmt: skip
    odds: list[tuple[int, Any]] = [
        (0, None), (1, ("growing",)), (2, (AgentKey, 1, 2)), (2, (int, 1, 2)), (6, None), (8, 5), (9, 5), (10, 5),
    ]  # fmt: skip
    for at, odd in odds:
        with pytest.raises((TypeError, ValueError, AttributeError)):
            NATIVE.Usual(*whole[:at], odd, *whole[at + 1 :])
    assert NATIVE.Usual(*whole) is not None
    for odd in (int, Past, AgentKey):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            NATIVE.Beginner(Bundle(b"", 0.0), odd)
