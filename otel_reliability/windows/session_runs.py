"""The runs of a session: what it keeps of each, and the signals that their tool calls give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import convert

from otel_reliability.metrics.sessions import (
    COHERENCE,
    CONFIDENCE,
    LOOP_DETECTION,
    SIGNALS,
    TOOL_CORRECTNESS,
    SignalScores,
)
from otel_reliability.model.observation import Observation
from otel_reliability.model.record import pack, unpack
from otel_reliability.model.run import Run, ToolCall
from otel_reliability.windows.rows import signals_of


class SessionRun(NamedTuple):
    """A run as its session keeps it, sorted by start: the score of each of `SIGNALS` or None, and
    which are derived.
    """

    start_ns: int
    run_id: str
    end_ns: int
    confidence: float | None
    loop_detection: float | None
    tool_correctness: float | None
    coherence: float | None
    derived: tuple[str, ...]

    @property
    def scores(self) -> SignalScores:
        """The score of each of `SIGNALS`."""
        return self.confidence, self.loop_detection, self.tool_correctness, self.coherence

    @property
    def signals(self) -> dict[str, float]:
        """The signals that it has.

        >>> SessionRun(0, "run", 1, 0.5, None, None, 1.0, ()).signals
        {'confidence': 0.5, 'coherence': 1.0}
        """
        return {
            name: score
            for name, score in zip(SIGNALS, self.scores, strict=True)
            if score is not None
        }


def session_run_of(run: Run, derive: bool) -> tuple[SessionRun, tuple[str, ...]]:
    """Return the signals of a run, and the names of the evaluations refused because their score was
    not from 0 to 1.

    With `derive`, loop_detection and tool_correctness are derived from the tool calls where no
    evaluation gives them.
    """
    evaluated = {name: score for name, score in signals_of(run.evaluations) if name in SIGNALS}
    found = {name: score for name, score in evaluated.items() if 0.0 <= score <= 1.0}
    refused = tuple([name for name in evaluated if name not in found])
    derived = derived_signals(run.tool_calls) if derive else {}
    added = tuple([name for name in derived if name not in found])
    signals = {**derived, **found}
    session_run = SessionRun(
        start_ns=run.start_ns,
        run_id=run.run_id,
        end_ns=run.end_ns,
        confidence=signals.get(CONFIDENCE),
        loop_detection=signals.get(LOOP_DETECTION),
        tool_correctness=signals.get(TOOL_CORRECTNESS),
        coherence=signals.get(COHERENCE),
        derived=added,
    )
    return session_run, refused


def derived_signals(calls: Sequence[ToolCall] | None) -> dict[str, float]:
    """Return loop_detection = 1 − share of repeats and tool_correctness = 1 − share of failed
    calls; none without calls.
    """
    if not calls:
        return {}
    repeats = sum([call.repeat for call in calls])
    failed = sum([not call.ok for call in calls])
    return {LOOP_DETECTION: 1.0 - repeats / len(calls), TOOL_CORRECTNESS: 1.0 - failed / len(calls)}


class SessionRuns:
    """The runs of one conversation by run id, and the engine's time of its last change.

    `observed`: what change detection compares of its runs, until it first closes.
    """

    __slots__ = ("observed", "runs", "touched")

    def __init__(self, touched: float) -> None:
        self.touched = touched
        self.runs: dict[str, SessionRun] = {}
        self.observed: dict[str, Observation] = {}

    @classmethod
    def of(cls, touched: float, runs: Iterable[Any], observed: Any = ()) -> SessionRuns:
        """Return a session from plain data."""
        session = cls(touched)
        for *facts, derived in runs:
            run = SessionRun(*facts, derived=tuple(derived))
            session.runs[run.run_id] = run
        session.observed = (
            {run.id: run for run in convert(observed, list[Observation])} if observed else {}
        )
        return session

    @classmethod
    def unpacked(cls, packed: bytes) -> SessionRuns:
        """Return a closed session from what `packed` made of it."""
        touched, runs = unpack(packed)
        return cls.of(touched, runs)

    def plain(self) -> list[Any]:
        """Return an open session as plain data."""
        return [self.touched, list(self.runs.values()), list(self.observed.values())]

    def packed(self) -> bytes:
        """Return a closed session as bytes."""
        return pack((self.touched, list(self.runs.values())))

    def sorted(self) -> list[SessionRun]:
        """Return the runs in the order of their starts."""
        return sorted(self.runs.values())
