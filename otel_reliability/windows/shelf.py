"""Where sessions stand, in the order in which something last happened in them.

There are tens of thousands, and nobody looks at most of them before they go. As objects each would have left the processor's
caches by then; the compiled module, where it is installed, keeps those of one run as bytes, one behind the other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from otel_reliability.metrics.sessions.bare import Four
from otel_reliability.model.row import BASELINE
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows import compiled
from otel_reliability.windows.recent_sessions import RecentSessions
from otel_reliability.windows.session import Session
from otel_reliability.windows.signals import BOTH

Key: TypeAlias = tuple[int, str]
"""The number of an agent, and the id of a session of its: plain values, which cost no looks for garbage."""


ScoresOf: TypeAlias = Callable[[Four, tuple[float, ...]], tuple[float | None, float | None, int, int]]
"""`scores_of_one`."""
Telling: TypeAlias = tuple[type[Any], Mapping[str, float], list[Any]]
"""What events are, with which weights as they are set, and where they are told."""


class Agent:
    """An agent that has sessions, or had: its number, how many are remembered, and the gauges of those that closed last."""

    __slots__ = ("key", "number", "recent", "sessions")

    def __init__(self, key: AgentKey, number: int) -> None:
        self.key, self.number, self.sessions = key, number, 0
        self.recent: RecentSessions | None = None


class Shelf(Protocol):
    """As `PlainShelf`."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Key]: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: Key, /) -> Session: ...
    def __setitem__(self, key: Key, session: Session, /) -> None: ...
    def get(self, key: Key, /) -> Session | None: ...
    def pop(self, key: Key, default: None, /) -> Session | None: ...
    def popitem(self, last: bool) -> tuple[Key, Session]: ...
    def items(self) -> Collection[tuple[Key, Session]]: ...
    def move_to_end(self, key: Key) -> None: ...
    def due(self, now: float, idle: float) -> list[Key]: ...
    def keys_of(self, numbers: set[int]) -> list[Key]: ...
    def take(
        self, run: Run, now: float, agents: Mapping[AgentKey, Agent], known: Callable[[AgentKey], bool], closed: Any
    ) -> int: ...
    def close(
        self, agents: Mapping[int, Agent], weights: tuple[float, ...], scores_of: ScoresOf, telling: Telling
    ) -> bool: ...


class PlainShelf(OrderedDict[Key, Session]):
    """Sessions by their keys, those first in which nothing has happened for the longest time."""

    def due(self, now: float, idle: float) -> list[Key]:
        """The first sessions, as long as nothing has happened in them for so many seconds."""
        found: list[Key] = []
        for key, session in self.items():
            if now - session[0] < idle:
                break
            found.append(key)
        return found

    def keys_of(self, numbers: set[int]) -> list[Key]:
        """The sessions of agents of these numbers."""
        return [key for key in self if key[0] in numbers]

    def take(
        self,
        run: Run,
        now: float,
        agents: Mapping[AgentKey, Agent],
        known: Callable[[AgentKey], bool],
        closed: PlainShelf,
    ) -> int:
        """Begin a session with a run, one of a known agent, its signals derived. Gives how many there are then, here and of the
        closed ones; 0: nothing was done, it is not so plain.
        """
        return 0

    def close(
        self, agents: Mapping[int, Agent], weights: tuple[float, ...], scores_of: ScoresOf, telling: Telling
    ) -> bool:
        """Close the first session and let go of it, and tell so. False: nothing was done, it is not so plain."""
        return False


new_shelf: Final[Callable[[], Shelf]] = (
    PlainShelf if compiled.NATIVE is None else partial(compiled.NATIVE.Shelf, compiled.ROWS, Agent, BASELINE, BOTH)
)
"""Makes one without sessions."""


def shelf_of(sessions: Iterable[tuple[Key, Session]]) -> Shelf:
    """One with these sessions."""
    made = new_shelf()
    for key, session in sessions:
        made[key] = session
    return made
