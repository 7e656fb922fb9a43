"""Where sessions stand: compiled shelves say what plain ones say."""

from __future__ import annotations

import copy
import gc
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, SessionSettings, Settings
from otel_reliability.model.event import RunEvent
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.model.span import Evaluation
from otel_reliability.model.tool_calls import ToolCalls
from otel_reliability.windows import sessions as module
from otel_reliability.windows import shelf as shelves
from otel_reliability.windows.compiled import NATIVE
from otel_reliability.windows.recent_sessions import RecentSessions
from otel_reliability.windows.session import Session
from otel_reliability.windows.sessions import SessionEvent, Sessions
from otel_reliability.windows.shelf import Agent, Key, PlainShelf, new_shelf
from otel_reliability.windows.signals import BOTH
from tests.windows.runs import KEY, call, closed, revised, run, settled, withdrawn

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

IDS = ("", "a", "session", "ses\xe4", "\u0141ódź", "\U0001f600" * 3, "\ud800", "a" * 300)
SCORES = (None, 1.0, 0.0, 0.25, -0.0)
BEYOND = (0, 1, -5, 1_700_000_000_000_000_000, 1 << 62, 1 << 63, -(1 << 70))


def trace(dice: Random) -> tuple[Any, ...]:
    """What a run tells its session, most often what is usual."""
    signals = [dice.choice(SCORES) for _ in range(4)]
    derived = dice.choice(((), BOTH, BOTH, BOTH[:1], ("another",), list(BOTH)))
    begun: Any = dice.choice((*BEYOND, 1.5))
    return (begun, dice.choice(IDS), dice.choice(BEYOND), *signals, derived)


def session(dice: Random) -> Session:
    """One of one run, most often."""
    touched: Any = dice.choice((0.0, 1.0, 2.5, 7))
    number = dice.choice((1, 1, 1, 1, 2, 0))
    held = [trace(dice) for _ in range(number)]
    if dice.random() < 0.1:
        return (touched, {one[1]: one for one in held})
    return (touched, *held)


def told(shelf: Any) -> list[str]:
    """All that stands there: with its types, since 1 is not 1.0 to whoever writes it down."""
    return [repr(item) for item in shelf.items()]


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_shelf_is_a_dictionary_in_order(seed: int) -> None:
    """Whatever is put there, moved and taken away, in whatever order: also where much has gone and room is made."""
    dice = Random(seed)
    ours, oracle = new_shelf(), PlainShelf()
    keys: list[Key] = [(dice.choice((1, 2, 3, 1 << 40)), f"{dice.choice(IDS)}{at}") for at in range(60)]
    for _ in range(dice.choice((30, 400))):
        key, chance = dice.choice(keys), dice.random()
        if chance < 0.45:
            ours[key] = oracle[key] = session(dice)
        elif chance < 0.6:
            assert repr(ours.pop(key, None)) == repr(oracle.pop(key, None))
        elif chance < 0.7 and len(oracle):
            assert repr(ours.popitem(last=False)) == repr(oracle.popitem(last=False))
        elif chance < 0.85 and key in oracle:
            ours.move_to_end(key)
            oracle.move_to_end(key)
        assert (key in ours, repr(ours.get(key)), len(ours)) == (key in oracle, repr(oracle.get(key)), len(oracle))
        if chance > 0.95:
            assert told(ours) == told(oracle)
            assert ours.due(4.0, 2.0) == oracle.due(4.0, 2.0)
            assert ours.keys_of({1, 3}) == oracle.keys_of({1, 3})
    assert told(ours) == told(oracle)
    assert list(ours) == list(oracle)


def spoken(dice: Random, number: int) -> Run:
    """A run of a session, most often one that is new and that nobody has judged."""
    path = " ".join(dice.choices("abc", k=dice.choice((0, 1, 3))))
    calls = [call(name, ok=dice.random() < 0.8, repeat=dice.random() < 0.1) for name in path.split()]
    return run(
        f"run-{number}",
        dice.choice((number, number, -number)),
        path,
        key=KEY._replace(agent=dice.choice(("one", "two", "three", "unknown"))),
        session_id=dice.choice((f"{number}", f"{number}", f"{dice.randrange(6)}", None)),
        tool_calls=dice.choice((ToolCalls.of(calls), None if dice.random() < 0.1 else tuple(calls))),
        evaluations=dice.choice((*[()] * 5, (Evaluation("confidence", 0.5, None, 0),))),
        nested=dice.random() < 0.05,
        condition=dice.choice((*["baseline"] * 9, "fault")),
    )


def happened(dice: Random, number: int) -> list[RunEvent]:
    """What happens to so many runs."""
    there: list[Run] = []
    found: list[RunEvent] = []
    for at in range(number):
        chance = dice.random()
        if chance < 0.8 or not there:
            there.append(spoken(dice, at))
            found.append(closed(there[-1]))
        elif chance < 0.9:
            found.append(withdrawn(there.pop(dice.randrange(len(there)))))
        elif chance < 0.95:
            before = there.pop(dice.randrange(len(there)))
            there.append(spoken(dice, at)._replace(run_id=before.run_id))
            found.append(revised(there[-1], before))
        else:
            found.append(settled(dice.choice(there)))
    return found


def is_known(key: AgentKey) -> bool:
    """Whether an agent has a place."""
    return key.agent != "unknown"


def everything(sessions: Sessions) -> list[str]:
    """All that sessions hold."""
    state = sessions.__getstate__()
    agents = [
        (agent.key, agent.number, agent.sessions, agent.recent and agent.recent.series())
        for agent in state.pop("_agents").values()
    ]
    return [repr(state[name]) for name in sorted(state) if name not in ("_numbered", "_known")] + [repr(agents)]


@given(st.integers(0, 2**32), st.sampled_from((2, 5, 50)), st.booleans())
@settings(max_examples=60)
def test_sessions_say_the_same_on_either_shelf(seed: int, most: int, derive: bool) -> None:
    """Whatever happens to runs, at ceilings and over restarts: every event, every account, and all that is remembered."""
    dice = Random(seed)
    limits, about = LimitSettings(sessions=most), SessionSettings(derive=derive, idle=20.0)
    ours = Sessions(Settings(limits=limits, sessions=about), is_known)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "new_shelf", PlainShelf)
        oracle = Sessions(Settings(limits=limits, sessions=about), is_known)
    assert type(ours._open) is not type(oracle._open)
    for now, event in enumerate(happened(dice, 80)):
        ours.apply(event, float(now))
        oracle.apply(event, float(now))
        if dice.random() < 0.2:
            assert repr(ours.tick(float(now))) == repr(oracle.tick(float(now)))
        if dice.random() < 0.02:
            gone = [KEY._replace(agent=one) for one in dice.choice((("one",), ("one", "two"), ()))]
            ours.forget(*gone)
            oracle.forget(*gone)
        if dice.random() < 0.02:
            ours = copy.deepcopy(ours)
        assert everything(ours) == everything(oracle)
    assert repr(ours.close_all()) == repr(oracle.close_all())
    assert everything(ours) == everything(oracle)


def plain(number: int) -> Run:
    """The usual run."""
    return run(
        f"run-{number}", number, "a", session_id=f"{number}", tool_calls=ToolCalls.of([call("a")]), evaluations=()
    )


def test_the_usual_is_done_here() -> None:
    """Else nothing would be compared: of an agent that is known, a new session of a run that nobody judged."""
    shelf, agents = new_shelf(), {KEY: Agent(KEY, 1)}

    assert shelf.take(plain(1), 0.0, agents, lambda _: True, new_shelf()) == 1
    assert shelf.take(plain(2), 0.0, agents, lambda _: True, new_shelf()) == 2
    assert shelf.take(plain(2), 0.0, agents, lambda _: True, new_shelf()) == 0
    assert shelf.take(plain(3), 0.0, agents, lambda _: False, new_shelf()) == 0
    assert shelf.take(plain(3), 0.0, {}, lambda _: True, new_shelf()) == 0
    assert agents[KEY].sessions == 2


def test_the_usual_session_is_closed_here() -> None:
    """The first, if it is of one run; what it scores is what is said of its signals, asked once for the same."""
    shelf, agents, asked, told = new_shelf(), {KEY: Agent(KEY, 1)}, list[Any](), list[Any]()
    for number in range(3):
        shelf.take(plain(number), 0.0, agents, lambda _: True, new_shelf())

    def scores_of(scores: Any, weights: Any) -> Any:
        asked.append((scores, weights))
        return (0.5, None, 1, 0)

    telling = (SessionEvent, {"confidence": 0.5}, told)
    assert not shelf.close({1: agents[KEY]}, (1.0,), scores_of, telling), "its agent had none yet"
    recent = agents[KEY].recent = RecentSessions()
    for _ in range(3):
        assert shelf.close({1: agents[KEY]}, (1.0,), scores_of, telling)
    traces = [(number, f"run-{number}", number, None, 1.0, 1.0, None, BOTH) for number in range(3)]
    closings = [(number, f"{number}", 0.5, None, 1, 0, BOTH) for number in range(3)]
    expected = [
        SessionEvent(KEY, closing, True, (trace,), {"confidence": 0.5})
        for closing, trace in zip(closings, traces, strict=True)
    ]
    assert told == expected
    assert {type(event) for event in told} == {SessionEvent}
    assert asked == [((None, 1.0, 1.0, None), (1.0,))]
    assert (len(shelf), agents[KEY].sessions, recent.ids()) == (0, 0, ["0", "1", "2"])
    assert not shelf.close({1: agents[KEY]}, (1.0,), scores_of, telling)
    shelf[1, "a"] = (0.0, (1, "run", 2, None, None, None, None, ()), (2, "other", 3, None, None, None, None, ()))
    assert not shelf.close({1: agents[KEY]}, (1.0,), scores_of, telling)


def test_many_sessions_keep_little_room() -> None:
    """Half of them gone, the others moved, time and again: room is used anew."""
    shelf = new_shelf()
    for at in range(50_000):
        shelf[1, f"session {at}"] = (float(at), (at, f"run {at}", at + 1, None, 1.0, 1.0, None, BOTH))
        if at >= 500:
            shelf.move_to_end((1, f"session {at - 400}"))
            assert shelf.pop((1, f"session {at - 500}"), None) is not None
    assert len(set(shelf)) == len(shelf) == 500
    assert sys.getsizeof(shelf) < 500 * 600


def test_whoever_lets_go_of_a_shelf_lets_go_of_what_stands_there() -> None:
    """Sessions of several runs are objects, which belong to it."""
    held = ("held",)
    before = sys.getrefcount(held)
    shelf = new_shelf()
    for at in range(100):
        shelf[1, f"{at % 7}"] = (0.0, held, held)
        shelf[2, f"{at % 5}"] = (0.0, held, held)
        shelf.move_to_end((2, f"{at % 5}"))
        if at % 3:
            shelf.popitem(last=False)
    del shelf
    gc.collect()
    assert sys.getrefcount(held) == before


def test_a_session_that_changes_its_form_stays_where_it_is() -> None:
    """From bytes to an object and back."""
    shelf = new_shelf()
    one = (1.0, (1, "run", 2, None, 1.0, 1.0, None, BOTH))
    for key in "abc":
        shelf[1, key] = one
    shelf[1, "a"] = (2.0, *one[1:], (3, "other", 4, None, None, None, None, ()))
    assert [shelf[1, "a"][0], list(shelf)] == [2.0, [(1, "a"), (1, "b"), (1, "c")]]
    shelf[1, "a"] = one
    assert (shelf[1, "a"], next(iter(shelf))) == (one, (1, "a"))
    shelf[1, "a"] = (1.0, (1, "a longer name of a run than was there", 2, None, 1.0, 1.0, None, BOTH))
    assert (shelf[1, "a"][1][1], next(iter(shelf))) == ("a longer name of a run than was there", (1, "a"))


@pytest.mark.parametrize("key", [1, (1,), (1, b"a"), ("a", "a"), (1, "a", 2), (1 << 70, "a")])
def test_what_is_no_key_is_refused(key: Any) -> None:
    """By its type, or its size."""
    shelf = new_shelf()
    with pytest.raises((TypeError, OverflowError)):
        shelf[key] = (0.0,)
    assert len(shelf) == 0


def test_a_shelf_may_be_made_of_what_another_held() -> None:
    """As after a restart."""
    shelf = new_shelf()
    shelf[1, "a"] = (0.0, (1, "run", 2, None, 1.0, 1.0, None, BOTH))
    assert told(shelves.shelf_of(shelf.items())) == told(shelf)
