"""A recording judged as a whole: did the agent change somewhere in it? (DESIGN §5.7)"""

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


def units_of(runs: Iterable[Run]) -> dict[AgentKey, list[Unit]]:
    """The units of a recording, per agent, in order: by end, then by id. All sessions end with the recording."""
    parts: dict[AgentKey, dict[tuple[str, bool], list[Unit]]] = {}
    for run in runs:
        if counts_for_change(run):
            of_session = run.session_id is not None
            key = (run.session_id or run.run_id, of_session)
            parts.setdefault(run.key, {}).setdefault(key, []).append(unit_of(run))
    return {agent: _ordered(grouped) for agent, grouped in parts.items()}


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
