"""A recording judged as a whole: did the agent change somewhere in it?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.blocks import in_blocks
from otel_reliability.change.detector import BLIND, Detector, Standing
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
        self._parts: dict[AgentKey, dict[tuple[str, bool], list[Unit]]] = {}

    def add(self, runs: Iterable[Run]) -> None:
        """Some runs that will not change any more."""
        for run in runs:
            if counts_for_change(run):
                of_session = run.session_id is not None
                grouped = self._parts.setdefault(run.key, {})
                grouped.setdefault((run.session_id or run.run_id, of_session), []).append(unit_of(run))
                if len(grouped) > 2 * MAX_UNITS:
                    self._parts[run.key] = _latest(grouped)

    def found(self) -> dict[AgentKey, list[Unit]]:
        """The units of each agent in order: by end, then by id."""
        return {agent: _ordered(grouped) for agent, grouped in self._parts.items()}


def units_of(runs: Iterable[Run]) -> dict[AgentKey, list[Unit]]:
    """The units of a recording's runs, per agent, in order."""
    units = Units()
    units.add(runs)
    return units.found()


def _latest(grouped: Mapping[tuple[str, bool], list[Unit]]) -> dict[tuple[str, bool], list[Unit]]:
    by_end = sorted(grouped.items(), key=lambda item: max(part.end_ns for part in item[1]))
    return dict(by_end[-MAX_UNITS:])


def _ordered(grouped: Mapping[tuple[str, bool], Sequence[Unit]]) -> list[Unit]:
    units = (joined(name, parts) if of_session else parts[0] for (name, of_session), parts in grouped.items())
    return in_order(units)[-MAX_UNITS:]


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
