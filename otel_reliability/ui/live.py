"""A running engine → the view of an agent, its score over time included."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from msgspec import structs

from otel_reliability.change.detector import Status
from otel_reliability.change.result import Result
from otel_reliability.change.sentences import of_alarm, of_evidence
from otel_reliability.config import Settings
from otel_reliability.contrast.sample import samples_of
from otel_reliability.engine import Engine
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import nearest
from otel_reliability.model.changed import ChangedKeys
from otel_reliability.model.cpu_budget import CpuBudget
from otel_reliability.model.letters import Letters
from otel_reliability.model.record import agent_key
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.read_view import ReadView
from otel_reliability.recording import window_of
from otel_reliability.report.build import AgentSource, agent_view, compared
from otel_reliability.report.changes import marks
from otel_reliability.report.history import MIN_RUNS, History
from otel_reliability.report.run_fields import made_of
from otel_reliability.report.text import clean, seconds
from otel_reliability.report.view import AgentComparison, AgentView, ChangeView, ScorePoint
from otel_reliability.ui.known_groups import KnownGroups
from otel_reliability.ui.runs import versions_of
from otel_reliability.windows.agents import AgentState
from otel_reliability.windows.rows import PathTable, row_of

MAX_EXAMINED: Final = 500
"""Runs of a window, the newest, in which a service looks for what is behind the numbers. The
numbers cover all runs.
"""
MAX_RUNS_FOR_INTERVALS: Final = 200
"""Runs of a window up to which a service computes intervals: they take some 3 ms a run."""
CPU_SHARE: Final = 0.01
"""Share of one processor that points may use in the long run. A point costs as much as the reading
of a score: some milliseconds, where requests form groups. An agent that is skipped adds its next
one.
"""
BURST_S: Final = 0.25
"""Seconds of processor time that points may use after a pause, over all agents."""
RESERVED_S: Final = 0.23
"""Those of a burst that are left to short histories: a new agent has a curve at once, and the
curves of others are no tenth of the service's work, as they were on recorded traffic.
"""
MAX_SENTENCE: Final = 2_000
MAX_EXCEEDING: Final = 5
"""Maximum open runs beyond a bound that a page shows."""

_STATES: Final = {
    Status.WATCHING: (Result.NO_CHANGE, "watching"),
    Status.LEARNING: (Result.NO_RESULT, "learning"),
}


class Histories:
    """The score over time of every agent of an engine. An agent that expires loses its history.

    An agent that is not loaded yet after a restart gets its points when it is.

    It is changed within the engine's turn, so it must be read within a turn too. A service stores
    `changes`, and gives them to `restore` after a restart.
    """

    def __init__(self, engine: Engine, spent: Callable[[], float] = time.thread_time) -> None:
        """`spent`: processor time in seconds."""
        self._engine = engine
        self._histories: dict[AgentKey, History] = {}
        self._changed = ChangedKeys[AgentKey]()
        self._spent = spent
        self._budget = CpuBudget(CPU_SHARE, BURST_S)
        engine.observe_agents(self._observe)

    def of(self, key: AgentKey) -> tuple[ScorePoint, ...]:
        """Return the points of an agent, oldest first."""
        history = self._histories.get(key)
        return () if history is None else tuple(history.points)

    def acknowledge(self, key: AgentKey) -> None:
        """Note that a user has acknowledged the last change of an agent."""
        history = self._histories.get(key) or self._begin(key)
        history.acknowledged = self._last_alarm(key)
        self._changed.add(key)

    def is_changed(self, key: AgentKey) -> bool:
        """Return whether an agent has a change that no user has acknowledged yet."""
        history = self._histories.get(key)
        return self._last_alarm(key) > (0 if history is None else history.acknowledged)

    def change(self, key: AgentKey) -> ChangeView:
        """Return what the detector of an agent reports, and whether a user has acknowledged it."""
        found = change_of(self._engine.view, key)
        return replace(found, acknowledged=found.state == "changed" and not self.is_changed(key))

    def _last_alarm(self, key: AgentKey) -> int:
        """Return when the last change of an agent was detected (ns); 0 without one."""
        detector = self._engine.view.detector(key)
        return 0 if detector is None or not detector.alarms else detector.alarms[-1].noticed_ns

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield the histories that changed since this was last asked for, by agent; None for an
        agent that expired.
        """
        for key in self._changed.take():
            history = self._histories.get(key)
            yield list(key), None if history is None else history.data()

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace all histories by what `changes` yielded."""
        self._histories = {agent_key(key): History.of(body) for key, body in data}
        self._engine.ignore_waiting()

    def remove(self, key: AgentKey) -> None:
        """Forget the history of an agent."""
        if self._histories.pop(key, None) is not None:
            self._changed.add(key)

    def _observe(self, state: AgentState) -> None:
        key = state.key
        history = self._histories.get(key)
        if history is not None:
            self._changed.add(key)
            if not history.is_due():
                return
        self._budget.refill(self._engine.now())
        reserved = 0.0 if history is None or history.is_short() else RESERVED_S
        if state.first_window.runs < MIN_RUNS or self._budget.left <= reserved:
            return
        began = self._spent()
        score = state.first_window.reading("score").value
        self._budget.left -= self._spent() - began
        end_ns = state.last_run_ns
        history = history or self._begin(key)
        if score is not None and end_ns is not None:
            history.add(ScorePoint(end_ns, score))
            self._changed.add(key)

    def _begin(self, key: AgentKey) -> History:
        view = self._engine.view
        if len(self._histories) >= len(view):
            expired = [known for known in self._histories if not view.has_runs(known)]
            for known in expired:
                del self._histories[known]
                self._changed.add(known)
        return self._histories.setdefault(key, History())


def snapshot(
    view: ReadView,
    key: AgentKey,
    histories: Histories | None = None,
    groups: KnownGroups | None = None,
) -> AgentSource | None:
    """Read an agent, and update its known groups, within the engine's turn, so that its view can be
    built outside it; None if it has expired.
    """
    state = view.agent(key)
    if state is None:
        return None
    window = state.first_window
    rows = tuple(window.rows())
    return AgentSource(
        key=key,
        window=window,
        rows=rows,
        known_groups=() if groups is None else groups.update(key, rows),
        readings=window.readings() if window.runs > MAX_EXAMINED else {},
        left_out=window.left_out,
        sessions=view.sessions(key),
        recent=tuple(state.recent),
        history=() if histories is None else histories.of(key),
        change=change_of(view, key) if histories is None else histories.change(key),
        exceeding=[
            line_of_open_run(run_id, shares)
            for run_id, shares in view.exceeding(key)[:MAX_EXCEEDING]
        ],
    )


def live_view(found: AgentSource, settings: Settings) -> AgentView:
    """Build the view of a snapshot: outside the engine's turn, for it takes a while. It examines a
    copy of the window.
    """
    window = window_of(found.rows[-MAX_EXAMINED:], settings.of_agent(found.key.agent))
    source = found._replace(window=window, readings=found.readings or window.readings())
    return agent_view(source, settings, MAX_RUNS_FOR_INTERVALS)


def versions_compared(
    key: AgentKey, runs: Sequence[Run], before: str, after: str, settings: Settings
) -> AgentComparison:
    """Compare the runs of two versions of an agent: values that `runs.versions_of` returns, with
    letters for prompts and tool definitions without a name, or their hashes.

    Raise `ConfigurationError` for a version that none of the runs has.
    """
    names = names_of_versions(runs)
    before, after = (names.get(version, version) for version in (before, after))
    runs = lettered(runs)
    known = versions_of(runs)
    for version in (before, after):
        if version not in known:
            remedy = (
                nearest(version, known)
                if known
                else "the telemetry names no version (service.version)"
            )
            raise ConfigurationError("version", version, "a version of these runs", remedy)
    old, new = ([run for run in runs if version in made_of(run)] for version in (before, after))
    return comparison(
        key, old, new, settings, (clean(before, MAX_SENTENCE), clean(after, MAX_SENTENCE))
    )


def lettered(runs: Sequence[Run]) -> list[Run]:
    """Return runs with letters for their prompts and tool definitions without a name."""
    letters = Letters()
    for run in runs:
        letters.add(run.fingerprints, run.start_ns, run.run_id)
    return [structs.replace(run, fingerprints=letters.of(run.fingerprints)) for run in runs]


def names_of_versions(runs: Sequence[Run]) -> dict[str, str]:
    """Return the versions, models, prompts and so on of runs, each with the name that people
    read: a letter in the place of a hash.
    """
    found: dict[str, str] = {}
    for run, named in zip(runs, lettered(runs), strict=True):
        values, names = made_of(run), made_of(named)
        found.update(zip(values, names if len(names) == len(values) else values, strict=True))
    return found


def comparison(
    key: AgentKey,
    before: Sequence[Run],
    after: Sequence[Run],
    settings: Settings,
    sides: tuple[str, str] | None = None,
) -> AgentComparison:
    """Compare two groups of runs of one agent, each of at least one. `sides` are their names."""
    paths = PathTable()
    views = list[AgentView]()
    for runs in (before, after):
        ordered = sorted(runs, key=lambda run: (run.end_ns, run.run_id))
        rows = [row_of(run, paths) for run in ordered]
        window = window_of(rows, settings.of_agent(key.agent))
        samples = samples_of(ordered)
        source = AgentSource(key, window, window.rows(), window.readings(), 0, (), samples)
        views.append(agent_view(source, settings, MAX_RUNS_FOR_INTERVALS))
    old, new = views
    return compared(old, new, sides)


def change_of(view: ReadView, key: AgentKey) -> ChangeView:
    """Return what the detector of an agent reports, within the engine's turn."""
    if not view.detects_change:
        return ChangeView(Result.NO_RESULT, "Not watched: change detection is switched off", "off")
    detector = view.detector(key)
    if detector is None:
        agent = view.agent(key)
        idle = seconds(view.settings.sessions.idle)
        if agent is None or all(run.session_id is None for run in agent.recent):
            return ChangeView(Result.NO_RESULT, "No result: no complete run yet", "none")
        when = (
            "No result yet: a conversation counts as one observation once it is closed, "
            f"{idle} after its last run"
        )
        return ChangeView(Result.NO_RESULT, when, "learning")
    evidence = detector.evidence()
    alarms = detector.alarms
    marked = marks(alarms, detector.points.latest)
    if alarms:
        more = (
            f"Collecting a new baseline: {evidence.blind:,} more observations."
            if evidence.blind
            else "No further change since."
        )
        sentence = f"{clean(of_alarm(alarms[-1]), MAX_SENTENCE)}. {more}"
        return ChangeView(Result.CHANGED, sentence, "changed", marks=marked)
    sentence = of_evidence(evidence, view.settings.change.runs_per_false_alarm)
    result, state = _STATES.get(evidence.status, (Result.NO_RESULT, "none"))
    return ChangeView(result, f"{sentence[0].upper()}{sentence[1:]}", state, marks=marked)


def line_of_open_run(run_id: str, shares: Mapping[str, float]) -> str:
    """Return what an open run exceeds.

    >>> line_of_open_run("5f35-d009", {"calls": 3.14, "tokens": 0.4})
    'Open run 5f35-d009 exceeds its bound: calls 3.1 times'
    """
    beyond = ", ".join(
        f"{kind.replace('_', ' ')} {share:.2g} times" for kind, share in shares.items() if share > 1
    )
    return f"Open run {run_id} exceeds its bound: {beyond}"


def headed(sentence: str) -> tuple[str, str]:
    """Split a sentence on change into the result and the data behind its colon.

    >>> headed("no result: it has 3 observations"), headed("no change in 90 observations")
    (('No result:', 'it has 3 observations.'), ('No change in 90 observations.', ''))
    """
    head, colon, rest = sentence.partition(": ")
    ended = rest if rest.endswith(".") else f"{rest}."
    return f"{head[:1].upper()}{head[1:]}{':' if colon else '.'}", ended if colon else ""
