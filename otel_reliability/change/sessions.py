"""Open sessions: their runs wait here until the session closes and becomes an observation."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from msgspec import convert

from otel_reliability.change.observation import Observation, joined
from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.record import agent_key
from otel_reliability.model.run import AgentKey

SessionKey: TypeAlias = tuple[AgentKey, str]

MAX_RUNS: Final = 1_000
"""Maximum runs of one session that are observed, the first."""


class OpenSession:
    """An open session: when its last run closed, and its runs' numbers by run id."""

    __slots__ = ("last", "runs")

    def __init__(self, last: float, runs: dict[str, Observation]) -> None:
        self.last, self.runs = last, runs


class OpenSessions:
    """The open sessions of all agents, the one without a run for longest first.

    A session closes when it had no run for `idle` seconds. It is an observation once: a later run of the same id is counted
    as late, for as long as the ids of closed sessions are remembered. `accounts` counts, by (what, why), what was
    refused: ("sessions", "limit"), ("session_runs", "limit"), ("session_runs", "late").
    """

    def __init__(self, idle: float, limit: int, accounts: Counter[tuple[str, str]]) -> None:
        self._accounts = accounts
        self._idle, self._limit = idle, limit
        self._open: OrderedDict[SessionKey, OpenSession] = OrderedDict()
        self._closed: set[bytes] = set()
        self._closed_order: deque[bytes] = deque()
        self._touched: set[SessionKey] = set()
        self._closings: dict[bytes, bool] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def due(self) -> float:
        """When the next one closes, if no run of it closes before."""
        return next(iter(self._open.values())).last + self._idle if self._open else math.inf

    def add(self, key: SessionKey, run: Observation, now: float) -> None:
        """Add a run that closed to its session."""
        self._touched.add(key)
        session = self._open.get(key)
        if session is None:
            if self._admit(key):
                self._open[key] = OpenSession(now, {run.id: run})
            return
        runs = session.runs
        if len(runs) < MAX_RUNS or run.id in runs:
            runs[run.id] = run
        else:
            self._accounts["session_runs", "limit"] += 1
        session.last = now
        self._open.move_to_end(key)

    def discard(self, key: SessionKey, run_id: str) -> bool:
        """Remove a run. Return False if it is not in an open session."""
        session = self._open.get(key)
        if session is None or session.runs.pop(run_id, None) is None:
            return False
        self._touched.add(key)
        if not session.runs:
            del self._open[key]
        return True

    def close(self, now: float) -> Iterable[tuple[AgentKey, Observation]]:
        """Return the observations of the sessions that were idle for long enough, in the order of their last runs."""
        while self._open:
            key, session = next(iter(self._open.items()))
            if now - session.last < self._idle:
                return
            del self._open[key]
            self._touched.add(key)
            self._remember(digest(key))
            yield key[0], joined(key[1], list(session.runs.values()))

    def _admit(self, key: SessionKey) -> bool:
        if self._closed and digest(key) in self._closed:
            self._accounts["session_runs", "late"] += 1
            return False
        if len(self._open) >= self._limit:
            self._touched.add(self._open.popitem(last=False)[0])
            self._accounts["sessions", "limit"] += 1
        return True

    def _remember(self, closed: bytes) -> None:
        self._closed.add(closed)
        self._closed_order.append(closed)
        self._closings[closed] = True
        if len(self._closed_order) > self._limit:
            oldest = self._closed_order.popleft()
            self._closed.discard(oldest)
            self._closings[oldest] = False

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield what changed since the last call: plain key, plain data (None: it is forgotten).

        An open session has its agent and its id as key; of a closed one the digest is remembered.
        """
        touched, self._touched = self._touched, set()
        for key in touched:
            session = self._open.get(key)
            yield list(key), None if session is None else [session.last, list(session.runs.values())]
        closings, self._closings = self._closings, {}
        for closed, is_known in closings.items():
            yield closed, True if is_known else None

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace all sessions by those that `changes` yielded, the one that changed last at the end."""
        for kept in (self._open, self._closed, self._closed_order, self._touched):
            kept.clear()
        for key, body in data:
            if isinstance(key, bytes):
                self._remember(key)
                continue
            agent, session = key
            runs = convert(body[1], list[Observation])
            self._open[agent_key(agent), session] = OpenSession(body[0], {run.id: run for run in runs})
        self._closings.clear()


def digest(key: SessionKey) -> bytes:
    """Return the hash by which a closed session is recognized."""
    agent, session = key
    text = repr((tuple(agent), session))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
