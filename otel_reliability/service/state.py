"""All state of the service: engine, counters and histograms, the account of log records. One thread
at a time changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from otel_reliability.engine import Engine
from otel_reliability.model.run import AgentKey
from otel_reliability.service.decoded import Decoded
from otel_reliability.sources.batch import Reason
from otel_reliability.state.parts import StoredPart
from otel_reliability.telemetry.series_recording import SeriesRecording


class State:
    """State that requests and time change. `logs` counts log records by (disposition, reason)."""

    def __init__(
        self,
        engine: Engine,
        recording: SeriesRecording,
        histories: StoredPart | None = None,
        groups: StoredPart | None = None,
    ) -> None:
        """`histories` are the scores over time that the UI shows, `groups` those of requests."""
        self.engine = engine
        self.recording = recording
        self.histories = histories
        self.groups = groups
        self.logs: Counter[tuple[str, str]] = Counter()
        self.watchers: list[Callable[[], None]] = []
        """Called after every step in which deadlines were met."""
        self.removers: list[Callable[[AgentKey], None]] = []
        """Called for every agent that was removed."""
        self.steps = 0
        """Number of times that a request was applied, or deadlines were met: it rises while the
        writer gets on.
        """

    def apply(self, request: Decoded) -> Sequence[int]:
        """Receive one request. Return how many closed runs each of its evaluations has reached."""
        reached: Sequence[int] = ()
        if request.spans:
            self.engine.receive(request.spans)
        if request.evaluations:
            reached = self.engine.report_outcomes(request.evaluations) or ()
        for key in request.removed:
            self.engine.remove(key)
            for remover in self.removers:
                remover(key)
        for reason, number in request.malformed.items():
            if reason == Reason.EVALUATION:
                self.logs["malformed", reason] += number
            else:
                self.engine.count("malformed", reason, number)
        self.logs["evaluation", ""] += len(request.evaluations)
        self.logs["other", ""] += request.other_logs
        self.steps += 1
        return reached

    def advance(self) -> None:
        """Meet every deadline that has passed."""
        self.engine.tick()
        self.engine.watch()
        self.recording.exceed()
        for watcher in self.watchers:
            watcher()
        self.steps += 1
