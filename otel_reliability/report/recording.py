"""The file door: recorded spans → runs, windows and sessions.

A recording has no clock. File order and event time close nothing: a run closes at the end of the input, or at a ceiling. But
files can be looked through beforehand: after the last line that names a trace nothing of it can come, so what would be told at
the end is told there, and a recording of any size needs no more memory than its runs that lie in one another.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from otel_reliability.config import ChangeSettings, LimitSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import AgentKey, CloseReason, Run
from otel_reliability.model.span import RawSpan, TraceId
from otel_reliability.report.completion import Completion
from otel_reliability.report.sessions import END, SESSION_ID, Kept, ScoredSessions
from otel_reliability.sources.batch import Batch, Malformed
from otel_reliability.sources.chunks import Progress
from otel_reliability.sources.mentions import mentions_in
from otel_reliability.sources.otlp_json import read_file, read_lines
from otel_reliability.windows.session import SessionScores
from otel_reliability.windows.sessions import SessionEvent
from otel_reliability.windows.window import AgentWindow

WINDOW: Final = "recording"
MOST_RUNS: Final = 100_000
"""Runs of an agent that a report looks at; beyond, the newest."""
SESSIONS_AT_ONCE: Final = 1_000
"""Sessions that close together at the end: what all of them tell would take more room than the whole reading."""

REPORT_SETTINGS: Final = Settings(
    windows=(WindowSettings(WINDOW, last=MOST_RUNS),),
    metrics=MetricSettings(min_runs=2),
    limits=LimitSettings(agents=20_000, rows=MOST_RUNS),
    change=ChangeSettings(enabled=False),
)
"""What reports begin with: the whole recording, from 2 runs on."""

Problem: TypeAlias = Callable[[Malformed], None]
Settled: TypeAlias = Callable[[list[Run]], None]
SpansSeen: TypeAlias = Callable[[Sequence[RawSpan]], None]


def for_report(settings: Settings, window: WindowSettings | None = None) -> Settings:
    """The settings with the one window of a report: the whole recording, or the one that was asked for.

    Nothing is watched for changes as runs come: that is asked of a recording as a whole.
    """
    last = MOST_RUNS if window is None or (window.last is None and window.period is None) else window.last
    period = None if window is None else window.period
    whole = WindowSettings(WINDOW, last=last, period=period)
    return replace(settings, windows=(whole,), change=replace(settings.change, enabled=False))


def _unseen(path: str | os.PathLike[str] | None) -> None:
    """Nobody looks how far reading has come."""


class Recording:
    """The runs of one or more files.

    `problem` is told of everything that cannot be used, `settled` of the runs that will not change any more, each once, in the
    order of (start, run id) at each telling. There are many tellings where files are looked through beforehand (`read_all`),
    else one at the end, but for runs that a ceiling closed before.
    """

    def __init__(
        self,
        settings: Settings = REPORT_SETTINGS,
        *,
        problem: Problem | None = None,
        settled: Settled | None = None,
        spans: SpansSeen | None = None,
    ) -> None:
        self.settings = settings
        self.engine = Engine(settings, clock=_standing, wall=None)
        self.problems: Counter[str] = Counter()
        """What could not be used, by reason."""
        self._scored: dict[AgentKey, dict[str, int | SessionEvent]] = {}
        self._kept: deque[tuple[AgentKey, str]] = deque()
        self._problem, self._tell, self._show = problem, settled, spans
        self._settled: list[Run] = []
        self.engine.observers.append(self._observe)

    def read(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Read one file of OTLP-JSON lines, `-` for standard input. Raises `SourceError` if it cannot be opened.

        Others may follow, so its runs stay open until the end: `read_all` reads those of which all are known.
        """
        for batch in read_file(path, progress=progress):
            self._take(batch)

    def read_all(
        self,
        paths: Sequence[str | os.PathLike[str]],
        progress: Callable[[str | os.PathLike[str] | None], Progress | None] = _unseen,
    ) -> None:
        """Read these files, after which none will follow. Where each can be read twice, it is looked through first.

        `progress` gives, for each file, whom to tell of the bytes read; for None, of those that are looked through.
        """
        mentions = mentions_in(paths, progress(None))
        if mentions is None:
            for path in paths:
                self.read(path, progress(path))
            return
        completion = Completion(mentions)
        for path, file in zip(paths, mentions.files, strict=True):
            for number, batch in read_lines(path, progress=progress(path), size=file.size):
                line = file.first_line + number - 1
                self._complete(completion.before(line))
                completion.see(line, batch.spans)
                self._take(batch)

    def close(self) -> Recording:
        """No more spans will come. Gives itself back."""
        while True:
            self.engine.flush(CloseReason.END_OF_INPUT, sessions=SESSIONS_AT_ONCE)
            self._hand_on()
            if not self.engine.sessions.open:
                return self

    @property
    def spans(self) -> Counter[str]:
        """What became of the spans: received, used, other, late, duplicate, malformed, refused."""
        found: Counter[str] = Counter()
        for (disposition, _), number in self.engine.accounts.items():
            found[disposition] += number
        return found

    def agents(self) -> list[AgentKey]:
        """Whose runs there are, in the order of their keys."""
        return sorted(self.engine.fleet.keys())

    def window(self, key: AgentKey, since_ns: int = 0) -> AgentWindow | None:
        """The window of an agent; with `since_ns`, of its runs that ended then or later. None: there is no such run."""
        state = self.engine.fleet.agent(key)
        window = None if state is None else state.windows[WINDOW]
        if window is None or not since_ns:
            return window
        rows = [row for row in window.rows() if row.end_ns >= since_ns]
        newer = AgentWindow(self.settings.windows[0], self.settings)
        for row in rows:
            newer.insert(row)
        return newer if rows else None

    def sessions(self, key: AgentKey, since_ns: int = 0) -> Sequence[SessionScores]:
        """The sessions of an agent, by when they ended."""
        kept = [_kept(name, told) for name, told in self._scored.get(key, {}).items()]
        ended = [one for one in kept if one[END] >= since_ns]
        return ScoredSessions(key, sorted(ended, key=lambda one: one[: SESSION_ID + 1]), self.engine.sessions)

    def _complete(self, traces: Sequence[TraceId]) -> None:
        if traces:
            self.engine.complete(traces)
            self._hand_on()

    def _take(self, batch: Batch) -> None:
        if self._show is not None:
            self._show(batch.spans)
        self.engine.receive(batch.spans)
        self.engine.receive_logs(batch.logs)
        if batch.evaluations:
            self.engine.receive_evaluations(batch.evaluations)
        for malformed in batch.malformed:
            self.problems[malformed.reason.value] += 1
            self.engine.count("malformed", malformed.reason.value)
            if self._problem is not None:
                self._problem(malformed)
        self.engine.tick()
        self._hand_on()

    def _observe(self, event: RunEvent, now: float) -> None:
        if event.change is RunChange.SETTLED and self._tell is not None:
            self._settled.append(event.run)

    def _hand_on(self) -> None:
        self.engine.take_settled()
        self.engine.take_revised()
        for event in self.engine.take_scored():
            self._keep(event)
        if self._settled and self._tell is not None:
            self._tell(sorted(self._settled, key=lambda run: (run.start_ns, run.run_id)))
            self._settled = []

    def _keep(self, event: SessionEvent) -> None:
        """Keep when a session ended, and what it scored where the engine has forgotten it, as long as there is room for
        those that are still open too.
        """
        sessions, session_id = self.engine.sessions, event.closed[SESSION_ID]
        scored = self._scored.setdefault(event.key, {})
        if session_id not in scored:
            self._kept.append((event.key, session_id))
        scored[session_id] = event.closed[END] if sessions.remembers_closed(event.key, session_id) else event
        while len(self._kept) + sessions.open > self.settings.limits.sessions and self._kept:
            key, first = self._kept.popleft()
            del self._scored[key][first]


def _kept(session_id: str, told: int | SessionEvent) -> Kept:
    return (told, session_id, None) if isinstance(told, int) else (told.closed[END], session_id, told)


def _standing() -> float:
    """The clock of a recording."""
    return 0.0
