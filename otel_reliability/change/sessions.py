"""Sessions that are still open: their runs wait here until the session closes and is a unit."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from otel_reliability.change.units import Unit, joined
from otel_reliability.model.run import AgentKey

SessionKey: TypeAlias = tuple[AgentKey, str]

MAX_RUNS: Final = 1_000
"""Runs of one session that are looked at, the first."""

_DIGEST_SIZE: Final = 8
_MOST_BEGUN: Final = 4_096
"""Agents whose part of a digest is remembered."""


class Open:
    """An open session: when its last run came, and its runs' numbers by run id."""

    __slots__ = ("last", "parts")

    def __init__(self, last: float, parts: dict[str, Unit]) -> None:
        self.last, self.parts = last, parts


class OpenSessions:
    """The open sessions of all agents, the one without a run for longest first.

    A session closes when it had no run for `idle` seconds. It is a unit once: what comes later under the same id is counted
    as late, for as long as the ids of closed sessions are remembered. `accounts` counts, by (what, why), what found no
    place: ("sessions", "ceiling"), ("session_runs", "ceiling"), ("session_runs", "late").
    """

    def __init__(self, idle: float, ceiling: int, accounts: Counter[tuple[str, str]]) -> None:
        self._accounts = accounts
        self.hold_to(idle, ceiling)
        self._open: OrderedDict[SessionKey, Open] = OrderedDict()
        self._closed: set[bytes] = set()
        self._closed_order: deque[bytes] = deque()

    def __len__(self) -> int:
        return len(self._open)

    def hold_to(self, idle: float, ceiling: int) -> None:
        """From now on sessions close after so long, and so many may be open."""
        self._idle, self._ceiling = idle, ceiling

    @property
    def due(self) -> float:
        """When the next one closes, if no run of it comes before."""
        return next(iter(self._open.values())).last + self._idle if self._open else math.inf

    def add(self, key: SessionKey, unit: Unit, now: float) -> None:
        """A run of a session closed."""
        session = self._open.get(key)
        if session is None:
            if self._admit(key):
                self._open[key] = Open(now, {unit.id: unit})
            return
        parts = session.parts
        if len(parts) < MAX_RUNS or unit.id in parts:
            parts[unit.id] = unit
        else:
            self._accounts["session_runs", "ceiling"] += 1
        session.last = now
        self._open.move_to_end(key)

    def discard(self, key: SessionKey, run_id: str) -> bool:
        """A run turned out to be another, or none. False: it is not in an open session."""
        session = self._open.get(key)
        if session is None or session.parts.pop(run_id, None) is None:
            return False
        if not session.parts:
            del self._open[key]
        return True

    def close(self, now: float) -> Iterable[tuple[AgentKey, Unit]]:
        """The units of the sessions that were idle for long enough, in the order of their last runs."""
        while self._open:
            key, session = next(iter(self._open.items()))
            if now - session.last < self._idle:
                return
            del self._open[key]
            self._remember(digest(key))
            yield key[0], joined(key[1], list(session.parts.values()))

    def _admit(self, key: SessionKey) -> bool:
        if self._closed and digest(key) in self._closed:
            self._accounts["session_runs", "late"] += 1
            return False
        if len(self._open) >= self._ceiling:
            self._open.popitem(last=False)
            self._accounts["sessions", "ceiling"] += 1
        return True

    def _remember(self, closed: bytes) -> None:
        self._closed.add(closed)
        self._closed_order.append(closed)
        if len(self._closed_order) > self._ceiling:
            self._closed.discard(self._closed_order.popleft())

    def to_state(self, now: float) -> dict[str, Any]:
        """Everything, in plain values; times as seconds since."""
        opened = [
            [list(key), session, now - at.last, list(at.parts.values())] for (key, session), at in self._open.items()
        ]
        return {"open": opened, "closed": [one.hex() for one in self._closed_order]}

    def restore(self, state: Mapping[str, Any], now: float) -> None:
        """Take over what `to_state` wrote. The time between does not count as idle."""
        for one in state["closed"]:
            self._remember(bytes.fromhex(one))
        for key, session, since, parts in state["open"]:
            units = [unit_from(part) for part in parts]
            self._open[agent_key(key), session] = Open(now - since, {unit.id: unit for unit in units})


def digest(key: SessionKey) -> bytes:
    """What is remembered of a closed session: enough to know it again, nothing to read."""
    agent, session = key
    found = _begun(agent).copy()
    found.update(_bytes(f"{session!r})"))
    return found.digest()


@lru_cache(maxsize=_MOST_BEGUN)
def _begun(agent: AgentKey) -> hashlib.blake2b:
    """What the digests of an agent's sessions share: that of `repr((tuple(agent), session))`, up to the session."""
    return hashlib.blake2b(_bytes(f"({tuple(agent)!r}, "), digest_size=_DIGEST_SIZE)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def agent_key(state: Iterable[Any]) -> AgentKey:
    """An agent key from the list that JSON makes of it."""
    namespace, name, environment, agent, extra = state
    return AgentKey(namespace, name, environment, agent, tuple((one, other) for one, other in extra))


def unit_from(state: Iterable[Any]) -> Unit:
    """A unit from the list that JSON makes of it."""
    unit = Unit(*state)
    return unit._replace(path=None if unit.path is None else tuple(unit.path))
