"""What nearly every run does to its agent, by the compiled module: it leaves all as Python leaves it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any, Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_reliability.config import ChangeSettings, LimitSettings, SessionSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.row import Path, Row
from otel_reliability.model.run import AgentKey, Outcome, Run
from otel_reliability.model.tool_calls import ToolCalls
from otel_reliability.windows import fleet, usual
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.compiled import NATIVE
from otel_reliability.windows.fleet import Fleet
from otel_reliability.windows.time import AHEAD_NS
from tests.windows.runs import KEY, call, closed, model_call, revised, run, settled, withdrawn
from tests.windows.test_compiled import odd

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

FEW = (WindowSettings("few", last=3),)
WINDOWS = (
    FEW,
    (*FEW, WindowSettings("one", last=1), WindowSettings("while", period=6e-9), WindowSettings("many", last=40)),
    (WindowSettings("while", last=9, period=3e-9),),
)
PLAIN: Final = (int, float, str, bytes, set, frozenset, type(None))
PATHS = ("", "a", "a b", "a b a", "c", "\u0141 a", "\U00010000")


def told(dice: Random, number: int, end_ns: int) -> Run:
    """One of many runs, most of them usual."""
    path = dice.choice((*PATHS, " ".join(dice.choices("abcde", k=3))))
    return run(
        f"run-{number}",
        end_ns,
        path,
        tool_calls=ToolCalls.of([call(name, ok=dice.random() < 0.9) for name in path.split()]),
        model_calls=ModelCalls.of([model_call((5, 1), start=end_ns, end=end_ns + 1)]),
        evaluations=(),
        task_id=dice.choice((*[None] * 9, "t")),
        condition=dice.choice((*["baseline"] * 9, "fault")),
        incomplete=dice.random() < 0.05,
        outcome=dice.choice(tuple(Outcome)),
        confidence=dice.choice((None, None, 0.5)),
        token_pressure=dice.choice((None, 0.0, 0.1, 0.7, 1.0, 3.0)),
    )


def history(dice: Random, number: int, lag: int) -> Iterator[RunEvent]:
    """So many runs of a busy agent, of which `lag` have not settled; now and then something happens that is not usual."""
    open_runs: list[Run] = []
    for at in range(number):
        chance = dice.random()
        if chance < 0.9 or not open_runs:
            open_runs.append(told(dice, at, 1_000 + at - dice.choice((*[0] * 9, 1, 2, 9))))
            yield closed(open_runs[-1])
        elif chance < 0.95:
            yield withdrawn(open_runs.pop(dice.randrange(len(open_runs))))
        else:
            which = dice.randrange(len(open_runs))
            before, open_runs[which] = (
                open_runs[which],
                told(dice, at, 1_000 + at)._replace(run_id=open_runs[which].run_id),
            )
            yield revised(open_runs[which], before)
        while len(open_runs) > lag:
            yield settled(open_runs.pop(0 if dice.random() < 0.9 else dice.randrange(len(open_runs))))


def everything(thing: Any, seen: frozenset[int] = frozenset()) -> Any:
    """All that an object of ours holds, and what that holds, as plain values."""
    if isinstance(thing, Path):
        return ("path", thing.code, thing.held)
    if id(thing) in seen:
        return "again"
    seen |= {id(thing)}
    if isinstance(thing, dict):
        items = cast("dict[Any, Any]", thing).items()
        return sorted([(repr(everything(key, seen)), everything(value, seen)) for key, value in items])
    if isinstance(thing, list | tuple):
        return [everything(one, seen) for one in cast("list[Any]", thing)]
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    if not names and type(thing).__module__.startswith("otel_reliability_native"):
        names = ["kinds", "number", "runs", "known", "passed", "total"]
    if names:
        return [(name, everything(getattr(thing, name), seen)) for name in names if hasattr(thing, name)]
    return cast("Any", thing) if isinstance(thing, PLAIN) else type(thing).__name__


def in_python(state: AgentState, run: Run) -> bool:
    """Nothing is usual."""
    return False


@given(st.integers(0, 2**32), st.sampled_from(WINDOWS), st.sampled_from((0, 2, 5, 12)), st.integers(1, 4))
@settings(max_examples=25)
def test_all_is_left_as_python_leaves_it(seed: int, windows: tuple[WindowSettings, ...], lag: int, recent: int) -> None:
    """Whatever comes, goes and settles, in whatever order, and whenever somebody asks."""
    dice, limits = Random(seed), LimitSettings(recent_runs=recent, paths=1_000 if seed % 2 else 4)
    ours, oracle = [Fleet(Settings(windows=windows, limits=limits)) for _ in range(2)]
    for event in history(dice, 60, lag):
        ours.apply(event, 0.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fleet, "close", in_python)
            patch.setattr(fleet, "settle", in_python)
            oracle.apply(event, 0.0)
        one, other = ours.agent(KEY), oracle.agent(KEY)
        if dice.random() < 0.1 and one is not None and other is not None:
            if dice.random() < 0.5:
                assert one.told() == other.told()
            assert everything(one) == everything(other)
    assert everything(ours.agent(KEY)) == everything(oracle.agent(KEY))
    assert ours.accounts == oracle.accounts


@given(st.integers(0, 2**32), st.sampled_from((0, 2, 5, 12)), st.booleans())
@settings(max_examples=25)
def test_many_at_once_do_what_each_does(seed: int, lag: int, only_settled: bool) -> None:
    """Of several agents, some of them new, some runs of them from a clock that is ahead."""
    dice = Random(seed)
    limits = LimitSettings(recent_runs=3, agents=3)
    ours, oracle = [Fleet(Settings(windows=FEW, limits=limits), places_return=True) for _ in range(2)]
    keys = [KEY._replace(agent=f"agent {number}") for number in range(4)]
    stories = [history(dice, 30, lag) for _ in keys]
    now, wall, known = 0.0, None if seed % 2 else 1_020 - AHEAD_NS, 0
    while stories:
        events: list[RunEvent] = []
        while stories and len(events) < dice.choice((1, 2, 9, 30)):
            which = dice.randrange(len(stories))
            event = next(stories[which], None)
            if event is None:
                del stories[which], keys[which]
            else:
                before = None if event.previous is None else event.previous._replace(key=keys[which])
                events.append(RunEvent(event.change, event.run._replace(key=keys[which]), before))
        now, at = now + dice.choice((0.0, 1.0)), 0
        while at < len(events):
            begun, at = at, ours.apply_usual(events, at, now, wall, only_settled=only_settled)
            known += at - begun
            assert not only_settled or {event.change for event in events[begun:at]} <= {RunChange.SETTLED}
            if at < len(events):
                ours.apply(events[at], now, wall)
                at += 1
        for event in events:
            oracle.apply(event, now, wall)
        assert list(ours._seen.items()) == list(oracle._seen.items())
    left = ours.keys()
    assert left == oracle.keys()
    assert [everything(ours.agent(key)) for key in left] == [everything(oracle.agent(key)) for key in left]
    assert ours.accounts == oracle.accounts
    assert known > 5


@given(st.integers(0, 2**32), st.sampled_from((0, 2, 5, 12)))
@settings(max_examples=10)
def test_whether_somebody_looks_on_changes_nothing(seed: int, lag: int) -> None:
    """Whoever looks on sees the windows as they are after each run that came; sessions are the same, and what is taken."""
    dice, now = Random(seed), [0.0]
    chosen = Settings(
        windows=FEW,
        limits=LimitSettings(recent_runs=3, agents=2, sessions=3),
        change=ChangeSettings(enabled=False),
        sessions=SessionSettings(idle=2.0),
    )
    alone, watched = [Engine(chosen, clock=lambda: now[0], wall=None) for _ in range(2)]
    oracle, looked = Fleet(chosen), list[str]()

    def look(event: RunEvent, at: float) -> None:
        oracle.apply(event, at)
        if event.change is not RunChange.SETTLED:
            looked.append(event.run.run_id)
            states = [agents.agent(event.run.key) for agents in (watched.fleet, oracle)]
            one, other = [state and [row.run_id for row in state.windows["few"].rows()] for state in states]
            assert one == other

    watched.observers.append(look)
    keys = [KEY._replace(agent=f"agent {number}") for number in range(3)]
    stories = {key: history(dice, 30, lag) for key in keys}
    places: dict[str, str | None] = {}

    def placed(one: Run, key: AgentKey) -> Run:
        session = places.setdefault(f"{key.agent} {one.run_id}", dice.choice((None, "a", "b", "c", "d")))
        return one._replace(key=key, session_id=session)

    while stories:
        key = dice.choice(list(stories))
        events = list(islice(stories[key], dice.choice((1, 2, 9, 30))))
        if not events:
            del stories[key]
        events = [
            RunEvent(change, placed(one, key), None if gone is None else placed(gone, key))
            for change, one, gone in events
        ]
        now[0] += dice.choice((0.0, 1.0, 3.0))
        for engine in (alone, watched):
            engine.receive_events(events)
            engine.tick()
        assert alone.take_scored() == watched.take_scored()
        assert (alone.take_settled(), alone.take_revised()) == (watched.take_settled(), watched.take_revised())
    assert (alone.closed, alone.recorded, alone.revised) == (watched.closed, watched.recorded, watched.revised)
    for key in keys:
        assert alone.fleet.told(key) == watched.fleet.told(key)
        assert alone.sessions.scores(key) == watched.sessions.scores(key)
    assert len(looked) > 30


def test_what_is_no_event_is_left() -> None:
    """And so is what happens to an agent that nobody knows, or that sleeps."""
    some = Fleet(Settings(windows=FEW))
    for event in (closed(plain(0)), closed(plain(1))):
        some.apply(event, 0.0)
    strange = (
        tuple(closed(plain(2))),
        closed(plain(2)._replace(key=KEY._replace(agent="other"))),
        revised(plain(2), plain(1)),
    )
    asleep = Fleet(Settings(windows=FEW))
    asleep.restore(some.to_state(), {KEY: dict})
    assert asleep.apply_usual([closed(plain(2))], 0, 1.0) == 0
    for one in (*strange, withdrawn(plain(1)), closed(plain(1)), RunEvent(RunChange.CLOSED, tuple(plain(2)))):  # pyright: ignore[reportArgumentType]  # test
        assert some.apply_usual([closed(plain(3)), one], 1, 1.0) == 1  # pyright: ignore[reportArgumentType]  # test
    assert some.apply_usual([closed(plain(3))], 0, 1.0, plain(3).end_ns - AHEAD_NS - 1) == 0
    assert some.apply_usual([closed(plain(3))], 0, 1.0, plain(3).end_ns - AHEAD_NS) == 1
    assert some.apply_usual([], 0, 1.0) == some.apply_usual([], 7, 1.0) - 7 == 0


def plain(number: int) -> Run:
    """The usual run."""
    return run(
        f"run-{number}",
        number,
        "a b",
        tool_calls=ToolCalls.of([call("a"), call("b")]),
        model_calls=ModelCalls.of([model_call(start=0, end=9)]),
        evaluations=(),
        token_pressure=0.5,
    )


def test_the_usual_is_done_here() -> None:
    """Else nothing would be compared."""
    state = AgentState(KEY, Settings(windows=FEW, limits=LimitSettings(recent_runs=2)), Fleet().accounts)
    state.close(plain(0))
    for number in range(1, 50):
        assert usual.close(state, plain(number))
        if number > 10:
            assert usual.settle(state, plain(number - 10))
    assert not usual.close(state, plain(49))
    assert not usual.close(state, plain(30))
    assert not usual.close(state, plain(60)._replace(task_id="task"))
    assert not usual.close(state, plain(60)._replace(end_ns=2**63))
    assert not usual.close(state, tuple(plain(60)))  # pyright: ignore[reportArgumentType]  # test
    assert not usual.settle(state, tuple(plain(45)))  # pyright: ignore[reportArgumentType]  # test
    assert [row.run_id for row in state.windows["few"].rows()] == ["run-47", "run-48", "run-49"]


@pytest.mark.parametrize("deed", ["withdraw", "settle", "close", "read"])
def test_whoever_comes_in_between_is_harmless(deed: str) -> None:
    """A comparison that lets somebody in who takes the rows away, or brings others, while a run comes."""
    state = AgentState(KEY, Settings(windows=FEW, limits=LimitSettings(recent_runs=2)), Fleet().accounts)
    numbers = iter(range(1, 10_000))
    deeds: dict[str, Callable[[], object]] = {
        "withdraw": lambda: [state.withdraw(plain(number)) for number in range(100)],
        "settle": lambda: [usual.settle(state, plain(number)) or state.settle(plain(number)) for number in range(100)],
        "close": lambda: state.close(plain(next(numbers))),
        "read": state.told,
    }
    within = list[str]()

    def come_in() -> None:
        if not within:
            within.append(deed)
            deeds[deed]()
            within.clear()

    state.close(plain(0))
    for _ in range(60):
        one = plain(next(numbers))
        strange = one._replace(run_id=f"{one.run_id} again", condition=odd("baseline", come_in))
        for coming in (one, strange._replace(end_ns=one.end_ns + 1)):
            try:
                if not usual.close(state, coming):
                    state.close(coming)
            except (TypeError, KeyError, ValueError, IndexError):  # what cannot go on says so
                within.clear()


def test_nothing_leaks() -> None:
    """Thousands of runs that came and settled hold on to nothing."""
    state = AgentState(KEY, Settings(windows=FEW, limits=LimitSettings(recent_runs=2)), Fleet().accounts)
    state.close(plain(0))
    made = plain(1)
    watched = (Row, made.tool_calls, made.model_calls, made.path, made.key, made.condition, 0.5)
    before = [sys.getrefcount(value) for value in watched]
    for number in range(1, 3_000):
        assert usual.close(state, made._replace(run_id=f"run-{number}", end_ns=number))
        if number > 10:
            assert usual.settle(state, made._replace(run_id=f"run-{number - 10}"))
    assert all(sys.getrefcount(value) - was < 200 for value, was in zip(watched, before, strict=True))


def test_other_classes_are_refused() -> None:
    """A module that knows other slots would read what is not there."""
    assert NATIVE is not None
    with pytest.raises(TypeError):
        NATIVE.Usual.__new__(NATIVE.Usual)
    with pytest.raises(AttributeError, match="code"):
        NATIVE.Usual(None, RunEvent, None, None, Run, Row, Row, *[object] * 9, 1)
    with pytest.raises(ValueError, match="no slot"):
        NATIVE.Usual(None, RunEvent, None, None, Run, Row, type("Other", (), {"code": "", "held": 0}), *[object] * 9, 1)
    with pytest.raises(ValueError, match="fields"):
        NATIVE.Usual(None, Row, None, None, Run, Row, Path, *[object] * 9, 1)
