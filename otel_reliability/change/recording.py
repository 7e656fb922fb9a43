"""A recording judged as a whole: did the agent change somewhere in it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.blocks import in_blocks
from otel_reliability.change.detector import BLIND, Detector, Standing
from otel_reliability.change.packed import Packer
from otel_reliability.change.units import Unit, counts_for_change, in_order, joined, unit_of
from otel_reliability.change.verdict import Verdict
from otel_reliability.config import ChangeSettings
from otel_reliability.model.run import AgentKey, Run

MAX_UNITS: Final = 100_000
"""Units of an agent that are judged, the newest."""


class Judgement(NamedTuple):
    """The verdict on a recording, with the alarms in their order. `why` says why there is no verdict."""

    verdict: Verdict
    units: int
    alarms: tuple[Alarm, ...] = ()
    why: str = ""


class Units:
    """The units of a recording, from runs in any order: runs of one session are joined, and all sessions end with it.

    Beyond 200,000 units of an agent the 100,000 that ended last stay.
    """

    def __init__(self) -> None:
        self._agents: dict[AgentKey, _Parts] = {}

    def add(self, runs: Iterable[Run]) -> None:
        """Some runs that will not change any more."""
        for run in runs:
            if counts_for_change(run):
                parts = self._agents.get(run.key)
                if parts is None:
                    parts = self._agents[run.key] = _Parts()
                parts.add(unit_of(run), run.session_id)

    def found(self) -> Mapping[AgentKey, list[Unit]]:
        """The units of each agent in order: by end, then by id. An agent's are made whenever somebody asks for them."""
        return _Found(self._agents)


class _Parts:
    """The units of an agent's runs, by session, and of those of none by run: a session may be called like a run."""

    def __init__(self) -> None:
        self._packer = Packer()
        self._sessions: dict[str, bytes | list[bytes]] = {}
        self._runs: dict[str, bytes] = {}

    def add(self, unit: Unit, session_id: str | None) -> None:
        """The unit of one more run."""
        packed = self._packer.pack(unit)
        if session_id is None:
            self._runs.setdefault(unit.id, packed)
        else:
            name = session_id or unit.id
            held = self._sessions.setdefault(name, packed)
            if isinstance(held, list):
                held.append(packed)
            elif held is not packed:
                self._sessions[name] = [held, packed]
        if len(self._sessions) + len(self._runs) > 2 * MAX_UNITS:
            self._keep_latest()

    def units(self) -> list[Unit]:
        """The latest of them, in order."""
        unpack = self._packer.unpack
        sessions = (joined(name, [unpack(part) for part in _several(held)]) for name, held in self._sessions.items())
        return in_order(chain(sessions, map(unpack, self._runs.values())))[-MAX_UNITS:]

    def _keep_latest(self) -> None:
        unpack = self._packer.unpack
        ends = [
            *(
                (max(unpack(part).end_ns for part in _several(held)), name, True)
                for name, held in self._sessions.items()
            ),
            *((unpack(part).end_ns, name, False) for name, part in self._runs.items()),
        ]
        latest = {(name, of_session) for _, name, of_session in sorted(ends)[-MAX_UNITS:]}
        self._sessions = {name: held for name, held in self._sessions.items() if (name, True) in latest}
        self._runs = {name: part for name, part in self._runs.items() if (name, False) in latest}


class _Found(Mapping[AgentKey, list[Unit]]):
    """Agents whose units are made when asked for: those of all of them together would not fit beside each other."""

    def __init__(self, agents: Mapping[AgentKey, _Parts]) -> None:
        self._agents = agents

    def __len__(self) -> int:
        return len(self._agents)

    def __iter__(self) -> Iterator[AgentKey]:
        return iter(self._agents)

    def __getitem__(self, key: AgentKey) -> list[Unit]:
        return self._agents[key].units()


def units_of(runs: Iterable[Run]) -> dict[AgentKey, list[Unit]]:
    """The units of a recording's runs, per agent, in order."""
    units = Units()
    units.add(runs)
    return dict(units.found())


def _several(held: bytes | list[bytes]) -> Sequence[bytes]:
    return (held,) if isinstance(held, bytes) else held


def judge(units: Sequence[Unit], settings: ChangeSettings, pinned: Sequence[Unit] = ()) -> Judgement:
    """Pass a recording's units through a detector of their own and say what it said."""
    n = len(units)
    if in_blocks(unit.task for unit in units if unit.task is not None):
        why = "the tasks stand in blocks, so the numbers change with the task; compare two recordings instead"
        return Judgement(Verdict.NO_VERDICT, n, why=why)
    detector = Detector(settings, pinned)
    alarms = tuple(alarm for unit in units if (alarm := detector.add(unit)) is not None)
    if alarms:
        return Judgement(Verdict.CHANGED, n, alarms)
    standing = detector.evidence().standing
    if standing is Standing.WATCHING:
        return Judgement(Verdict.NO_CHANGE, n)
    why = (
        standing.value
        if standing is Standing.SHORT_REFERENCE
        else f"it has {n} units, and the first {BLIND} are learnt from"
    )
    return Judgement(Verdict.NO_VERDICT, n, why=why)
