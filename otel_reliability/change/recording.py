"""A recording evaluated as a whole: did the agent change somewhere in it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.detector import BLIND, Detector, Status
from otel_reliability.change.points import ChangePoint, ChangePoints
from otel_reliability.change.result import Result
from otel_reliability.change.task_order import in_blocks
from otel_reliability.config import ChangeSettings
from otel_reliability.model.observation import (
    Observation,
    Steps,
    counts_for_change,
    in_order,
    joined,
    observation_of,
)
from otel_reliability.model.run import AgentKey, Run

MAX_OBSERVATIONS: Final = 100_000
"""Maximum observations of an agent that are evaluated, the newest."""


class RecordingResult(NamedTuple):
    """The result of a recording, with the alarms and the latest change points in their order.
    `why`: the reason for NO_RESULT.
    """

    result: Result
    observations: int
    alarms: tuple[Alarm, ...] = ()
    why: str = ""
    points: tuple[ChangePoint, ...] = ()


class Observations(Mapping[AgentKey, list[Observation]]):
    """The observations of a recording by agent, in order: by end, then by id. Each look-up of an
    agent makes them again, as those of all agents together need not fit into memory.

    Runs come in any order; those of one session are joined, and all sessions end with the
    recording. Beyond 200,000 observations of an agent the 100,000 that ended last stay.
    """

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._agents: dict[AgentKey, _AgentRuns] = {}
        self.add(runs)

    def add(self, runs: Iterable[Run]) -> None:
        """Add final runs."""
        for run in runs:
            if counts_for_change(run):
                self._agents.setdefault(run.key, _AgentRuns()).add(
                    observation_of(run), run.session_id
                )

    def __len__(self) -> int:
        return len(self._agents)

    def __iter__(self) -> Iterator[AgentKey]:
        return iter(self._agents)

    def __getitem__(self, key: AgentKey) -> list[Observation]:
        return self._agents[key].observations()


class _AgentRuns:
    """The observations of an agent's runs, by (session id, run id), of which one is empty: a
    session may have a run's name.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], list[Observation]] = {}
        self._paths: dict[Steps | None, Steps | None] = {}

    def add(self, run: Observation, session_id: str | None) -> None:
        """Add the observation of one more run."""
        run = replace(run, path=self._paths.setdefault(run.path, run.path))
        if session_id is None:
            self._runs.setdefault(("", run.id), [run])
        else:
            self._runs.setdefault((session_id or run.id, ""), []).append(run)
        if len(self._runs) > 2 * MAX_OBSERVATIONS:
            ends = sorted(
                (max(run.end_ns for run in runs), key) for key, runs in self._runs.items()
            )
            latest = {key for _, key in ends[-MAX_OBSERVATIONS:]}
            self._runs = {key: runs for key, runs in self._runs.items() if key in latest}

    def observations(self) -> list[Observation]:
        """Return the latest of them, in order."""
        found = (
            joined(session, runs) if session else runs[0]
            for (session, _), runs in self._runs.items()
        )
        return in_order(found)[-MAX_OBSERVATIONS:]


def evaluate(
    observations: Sequence[Observation],
    settings: ChangeSettings,
    pinned: Sequence[Observation] = (),
) -> RecordingResult:
    """Return the result of a recording's observations, passed through a detector of their own."""
    n = len(observations)
    if in_blocks(one.task for one in observations if one.task is not None):
        why = (
            "the tasks stand in blocks, so the numbers change with the task; compare two "
            "recordings instead"
        )
        history = ChangePoints()
        for ordinal, one in enumerate(observations, 1):
            history.add(one, ordinal)
        return RecordingResult(Result.NO_RESULT, n, why=why, points=tuple(history.latest))
    detector = Detector(settings, pinned)
    alarms = tuple(alarm for one in observations if (alarm := detector.add(one)) is not None)
    result = Result.NO_RESULT
    why = ""
    status = detector.evidence().status
    if alarms:
        result = Result.CHANGED
    elif status is Status.WATCHING:
        result = Result.NO_CHANGE
    else:
        why = (
            status.value
            if status is Status.SHORT_REFERENCE
            else f"{n} of the {BLIND} observations that a baseline takes"
        )
    return RecordingResult(result, n, alarms, why, tuple(detector.points.latest))
