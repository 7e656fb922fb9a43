"""The recording: spans of files → runs, windows and sessions.

A recording has no clock. File order and event time close nothing: a run closes at the end of the
input, or at a limit. But files can be scanned beforehand: after the last line that names a trace
nothing of it can follow, so its runs are finalized there, and a recording of any size needs no more
memory than its overlapping runs.
"""

from __future__ import annotations

import heapq
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from otel_reliability.config import LimitSettings, MetricSettings, Settings, WindowSettings
from otel_reliability.contrast.sample import LatestSamples, Sample
from otel_reliability.engine import Engine
from otel_reliability.model.letters import Letters
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import Evaluation, RawSpan, TraceId
from otel_reliability.sources.batch import Batch, Malformed, Reason
from otel_reliability.sources.chunks import Progress
from otel_reliability.sources.kinds import (
    OTLP_LINES,
    UNKNOWN,
    UNREADABLE,
    Input,
    inputs_of,
    read_lines,
)
from otel_reliability.sources.mentions import Mentions, mentions_in
from otel_reliability.sources.sessions.formats import Telemetry, read_sessions
from otel_reliability.windows.session_scores import SessionScores
from otel_reliability.windows.sessions import Sessions
from otel_reliability.windows.window import AgentWindow

WINDOW: Final = "recording"
MAX_RUNS: Final = 100_000
"""Runs of an agent that a report covers; beyond, the newest."""
MOST_LINKED: Final = 100_000
"""Traces with links between them that are remembered; beyond, no trace counts as complete any more.
"""
SESSIONS_PER_BATCH: Final = 1_000
"""Sessions that close together at the end: the scores of all of them would take more memory than
the whole reading.
"""
OPEN_SESSIONS: Final = 50
"""Sessions of session files that stay open, the latest: closed ones take a quarter of the memory.
"""

Problem: TypeAlias = Callable[[Malformed], None]
FinalSeen: TypeAlias = Callable[[list[Run]], None]
BatchSeen: TypeAlias = Callable[[Batch], None]


def for_report(settings: Settings, window: WindowSettings | None = None) -> Settings:
    """Return the settings with the one window of a report: the whole recording, or the given one.

    Change detection is off while runs arrive: it examines a recording as a whole.
    """
    last = (
        MAX_RUNS
        if window is None or (window.last is None and window.period is None)
        else window.last
    )
    period = None if window is None else window.period
    whole = WindowSettings(WINDOW, last=last, period=period)
    return replace(settings, windows=(whole,), change=replace(settings.change, enabled=False))


REPORT_SETTINGS: Final = for_report(
    Settings(metrics=MetricSettings(min_runs=2), limits=LimitSettings(agents=20_000, rows=MAX_RUNS))
)
"""Default settings of reports: the whole recording, from 2 runs on."""


def window_of(rows: Sequence[Row], settings: Settings) -> AgentWindow:
    """Return a window of these rows."""
    window = AgentWindow(WindowSettings("chosen", last=max(1, len(rows))), settings)
    for row in rows:
        window.insert(row)
    return window


class Recording:
    """The runs of one or more files.

    `problem` receives everything that cannot be used, `final` the runs that are final, each once,
    in batches sorted by (start, run id). There are many batches where files are scanned beforehand
    (`read_all`), else one at the end, but for runs that a limit closed before. `batches` receives
    the content of each line. `split_by`: see `Engine`.
    """

    def __init__(
        self,
        settings: Settings = REPORT_SETTINGS,
        *,
        problem: Problem | None = None,
        final: FinalSeen | None = None,
        batches: BatchSeen | None = None,
        split_by: str | None = None,
    ) -> None:
        self.settings = settings
        self.engine = Engine(
            settings, clock=lambda: 0.0, wall=None, split_by=split_by
        )  # time stands still
        self.problems: Counter[str] = Counter()
        """Lines and spans that could not be used, by reason."""
        self.items = 0
        """Spans, log records and evaluations that were read."""
        self.repeated_prompts = 0
        """Prompts of session files that telemetry reports too: they count there."""
        self._ended: dict[AgentKey, dict[str, int]] = {}
        """When each closed session ended, by its id."""
        self._samples: dict[AgentKey, LatestSamples] = {}
        self._letters: dict[AgentKey, Letters] = {}
        self._noted = 0
        self._problem = problem
        self._finalized = final
        self._batch_seen = batches
        self._final: list[Run] = []
        self._telemetry: Telemetry | None = None
        self.engine.observers.append(self._observe)

    def report_outcomes(self, outcomes: Sequence[Evaluation]) -> None:
        """Let runs to come have these outcomes, which became known after them."""
        reported = self.engine.assembler.reported
        reported.limit = max(reported.limit, len(outcomes))
        self.engine.report_outcomes(outcomes)

    @property
    def unknown_outcomes(self) -> int:
        """Number of reported outcomes that have reached no run."""
        return self.engine.assembler.reported.unreached

    def read(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Read one file of a kind that `sources.kinds` knows, `-` for standard input. Raises
        `SourceError` if it cannot be opened.

        Others may follow, so its runs stay open until the end: `read_all` reads those of which all
        are known.
        """
        for _, batch in read_lines(path, progress=progress):
            self._receive(batch)

    def read_all(
        self,
        paths: Sequence[str | os.PathLike[str]],
        progress: Callable[[str | os.PathLike[str] | None], Progress | None] = lambda _: None,
    ) -> None:
        """Read these files, or those below folders, after which none will follow. Where each can be
        read twice, it is scanned first; sessions of coding agents say themselves what is complete.

        `progress` returns, for each file, what receives the number of bytes read; for None, that of
        the scan.
        """
        inputs = inputs_of(paths)
        others: list[Input] = []
        for each in inputs:
            if each.kind is UNREADABLE:
                detail = "it may not be read; check the permissions"
                self._receive(Batch(malformed=[Malformed(Reason.KIND, detail, str(each.path))]))
            elif each.session is None:
                others.append(each)
        sessions = [each.session for each in inputs if each.session is not None]
        telemetry = Telemetry()
        if sessions:
            self._telemetry = telemetry
        self._read_others(others, progress, alone=not sessions)
        self._telemetry = None
        for batch in read_sessions(sessions, telemetry, progress):
            self._receive(batch)
            self.engine.complete(batch.complete, alone=True)
            if self.engine.sessions.number_open > 2 * OPEN_SESSIONS:
                self.engine.close_sessions(OPEN_SESSIONS)
            self._pass_on()
        self.repeated_prompts += telemetry.repeated

    def _read_others(
        self,
        inputs: Sequence[Input],
        progress: Callable[[str | os.PathLike[str] | None], Progress | None],
        *,
        alone: bool,
    ) -> None:
        """Read files other than sessions; `alone`: there are none of these."""
        paths = [each.path for each in inputs]
        is_known = alone and all(each.kind in (OTLP_LINES, UNKNOWN) for each in inputs)
        mentions = mentions_in(paths, progress(None)) if is_known and paths else None
        if mentions is None:
            for path in paths:
                self.read(path, progress(path))
            return
        completion = Completion(mentions)
        for path, file in zip(paths, mentions.files, strict=True):
            for number, batch in read_lines(path, progress=progress(path), size=file.size):
                line = file.first_line + number - 1
                if complete := completion.before(line):
                    self.engine.complete(complete)
                    self._pass_on()
                completion.see(line, batch.spans)
                self._receive(batch)

    def close(self) -> Recording:
        """End the recording, and return it."""
        while True:
            self.engine.flush(CloseReason.END_OF_INPUT, sessions=SESSIONS_PER_BATCH)
            self._pass_on()
            if not self.engine.sessions.number_open:
                return self

    @property
    def spans(self) -> Counter[str]:
        """The spans by disposition: received, used, other, late, duplicate, malformed, refused."""
        found: Counter[str] = Counter()
        for (disposition, _), number in self.engine.accounts.items():
            found[disposition] += number
        return found

    def agents(self) -> list[AgentKey]:
        """Return the agents with runs, in the order of their keys."""
        return sorted(self.engine.view.keys())

    def window(self, key: AgentKey, since_ns: int = 0) -> AgentWindow | None:
        """Return the window of an agent; with `since_ns`, of its runs that ended then or later.
        None: there is no such run.
        """
        state = self.engine.view.agent(key)
        window = None if state is None else state.windows[WINDOW]
        if window is None or not since_ns:
            return window
        rows = [row for row in window.rows() if row.end_ns >= since_ns]
        return window_of(rows, self.settings.of_agent(key.agent)) if rows else None

    def samples(self, key: AgentKey, since_ns: int = 0) -> list[Sample]:
        """Return what contrasts need of an agent's latest final runs that ended then or later."""
        found = self._samples.get(key)
        if found is None:
            return []
        letters = self.letters(key)
        return [
            one._replace(fingerprints=letters.of(one.fingerprints))
            for one in found.latest()
            if one.end_ns >= since_ns
        ]

    def letters(self, key: AgentKey) -> Letters:
        """Return the letters of an agent's prompts and tool definitions without a name."""
        return self._letters.setdefault(key, Letters())

    def samples_by_agent(self, since_ns: int = 0) -> dict[AgentKey, list[Sample]]:
        """Return the `samples` of every agent that has any."""
        found = {key: self.samples(key, since_ns) for key in self.agents()}
        return {key: samples for key, samples in found.items() if samples}

    def sessions(self, key: AgentKey, since_ns: int = 0) -> Sequence[SessionScores]:
        """Return the closed sessions of an agent that the engine remembers, by when they ended."""
        ended = self._ended.get(key, {})
        sessions = self.engine.sessions
        ids = [
            each
            for each in ended
            if ended[each] >= since_ns and sessions.remembers_closed(key, each)
        ]
        return ScoredSessions(sessions, key, sorted(ids, key=lambda each: (ended[each], each)))

    def _receive(self, batch: Batch) -> None:
        if self._telemetry is not None:
            self._telemetry.see(batch)
        if self._batch_seen is not None:
            self._batch_seen(batch)
        self.items += len(batch.spans) + len(batch.logs) + len(batch.evaluations)
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
        self._pass_on()

    def _observe(self, event: RunEvent, now: float) -> None:
        if event.change is not RunChange.FINAL:
            return
        run = event.run
        self._samples.setdefault(run.key, LatestSamples()).add(run)
        self.letters(run.key).add(run.fingerprints, run.start_ns, run.run_id)
        if self._finalized is not None:
            self._final.append(event.run)

    def _pass_on(self) -> None:
        self.engine.take_final()
        self.engine.take_revised()
        for event in self.engine.take_scored():
            self._ended.setdefault(event.key, {})[event.session.session_id] = event.session.end_ns
            self._noted += 1
        if self._noted > 2 * self.settings.limits.sessions:
            self._drop_forgotten()
        if self._final and self._finalized is not None:
            self._finalized(sorted(self._final, key=lambda run: (run.start_ns, run.run_id)))
            self._final = []

    def _drop_forgotten(self) -> None:
        """Forget when those sessions ended that the engine has forgotten."""
        known = self.engine.sessions.remembers_closed
        kept = {
            key: {one: end for one, end in ended.items() if known(key, one)}
            for key, ended in self._ended.items()
        }
        self._ended = {key: ended for key, ended in kept.items() if ended}
        self._noted = sum(map(len, self._ended.values()))


class Completion:
    """The traces that have begun, by the line that names them last.

    A trace that a link may join to another is never complete: its linked spans can be on any line.
    """

    def __init__(self, mentions: Mentions) -> None:
        self._mentions = mentions
        self._ends: list[tuple[int, TraceId]] = []
        self._begun: set[TraceId] = set()
        self._linked: set[TraceId] = set()
        self._is_sound = True

    def before(self, line: int) -> list[TraceId]:
        """Return the traces that are complete when this line begins, each once."""
        found: list[TraceId] = []
        while self._ends and self._ends[0][0] < line and self._is_sound:
            trace_id = heapq.heappop(self._ends)[1]
            self._begun.discard(trace_id)
            if trace_id not in self._linked:
                found.append(trace_id)
        return found

    def see(self, line: int, spans: Sequence[RawSpan]) -> None:
        """Record the spans of this line."""
        for span in spans:
            if span.links and span.parent_id is None and len(span.links) == 1:
                self._linked.update((span.trace_id, span.links[0][0]))
        fresh = list({span.trace_id for span in spans} - self._begun)
        ends = self._mentions.last(fresh) if fresh else ()
        if min(ends, default=line) < line or len(self._linked) > MOST_LINKED:
            self._is_sound = (
                False  # the file has changed since it was scanned, or hangs together all over
            )
            self._ends, self._begun, self._linked = [], set(), set()
        if self._is_sound:
            self._begun.update(fresh)
            for end, trace_id in zip(ends, fresh, strict=True):
                heapq.heappush(self._ends, (end, trace_id))


class ScoredSessions(Sequence[SessionScores]):
    """Closed sessions of an agent by id, each scored when it is read: there may be tens of
    thousands, and what explains them is large.
    """

    def __init__(self, sessions: Sessions, key: AgentKey, ids: Sequence[str]) -> None:
        self._sessions = sessions
        self._key = key
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return ScoredSessions(self._sessions, self._key, self._ids[at])
        session_id = self._ids[at]
        found = self._sessions.scores_of_closed(self._key, session_id)
        if found is None:
            raise KeyError(session_id)
        return found
