"""What is read of one agent at one moment, from a running engine or a recording: a page is made of nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.detector import Evidence, Status
from otel_reliability.change.recording import RecordingResult
from otel_reliability.change.result import Result
from otel_reliability.change.sentences import moment, of_alarm, of_evidence
from otel_reliability.config import Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.pages.course import Courses, Point, recorded_course
from otel_reliability.report.changes import Finding
from otel_reliability.report.findings import ranked_costs
from otel_reliability.report.recording import Recording
from otel_reliability.report.scorecard import Scorecard, scorecard
from otel_reliability.report.text import clean, count
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.fleet import Fleet
from otel_reliability.windows.session import SessionScores
from otel_reliability.windows.window import AgentWindow

MOST_LOOKED_AT: Final = 500
"""Runs of a window, the newest, that a running service looks at for what is behind the numbers. The numbers are of all."""
MOST_FOR_INTERVALS: Final = 200
"""Runs of a window up to which a running service computes intervals: they take some 3 ms a run."""
LONGEST_SENTENCE: Final = 2_000


class Mark(NamedTuple):
    """A change, as a mark on a curve: about when it began, when it was noticed, what it was."""

    since_ns: int
    noticed_ns: int
    sentence: str


class Changes(NamedTuple):
    """What is known of changes. `state`: changed, watching, learning, none (nothing can be said) or off.

    `head` is what is so in few words, `rest` the evidence.
    """

    state: str
    head: str
    rest: str = ""
    marks: tuple[Mark, ...] = ()


UNWATCHED: Final = Changes("none", "No verdict:", "no run of it counts for changes yet.")
OFF: Final = Changes("off", "Not watched:", "change detection is switched off.")


class AgentLook(NamedTuple):
    """An agent at one moment. `recent` are its last whole runs, the newest last, each with its path distance."""

    card: Scorecard
    recent: Sequence[tuple[Run, float | None]]
    course: Sequence[Point]
    changes: Changes


class Taken(NamedTuple):
    """What is taken of a running engine within its turn, so that the rest can be made outside it.

    `readings` are those of the whole window, where it is too long to be looked at as a whole.
    """

    key: AgentKey
    rows: Sequence[Row]
    left_out: int
    readings: Mapping[str, Reading]
    sessions: Sequence[SessionScores]
    recent: Sequence[tuple[Run, float | None]]
    course: Sequence[Point]
    changes: Changes


def taken(engine: Engine, fleet: Fleet, key: AgentKey, courses: Courses | None = None) -> Taken | None:
    """An agent as it is now, within the engine's turn; None if it has expired."""
    state = fleet.agent(key)
    if state is None:
        return None
    window = state.first_window
    return Taken(
        key=key,
        rows=tuple(window.rows()),
        left_out=window.turnover + window.refused,
        readings=window.readings() if window.runs > MOST_LOOKED_AT else {},
        sessions=engine.sessions.scores(key),
        recent=recent_runs(state, window),
        course=() if courses is None else courses.of(key),
        changes=changes_of(engine, key),
    )


def look_of(found: Taken, settings: Settings) -> AgentLook:
    """What there is to see of it: outside the engine's turn, for it takes a while."""
    window = AgentWindow(WindowSettings("newest", last=MOST_LOOKED_AT), settings, frozenset(), _forget)
    for row in found.rows[-MOST_LOOKED_AT:]:
        window.insert(row)
    card = scorecard(found.key, window, found.sessions, settings, most_for_intervals=MOST_FOR_INTERVALS)
    card = card._replace(left_out=found.left_out)
    if found.readings:
        card = _of_all(card, found)
    return AgentLook(card, found.recent, found.course, found.changes)


def _of_all(card: Scorecard, found: Taken) -> Scorecard:
    """The numbers are those of all runs; what is behind them stays that of the newest."""
    readings = {**card.readings, **found.readings}
    baseline = [row for row in found.rows if row.baseline]
    return card._replace(
        runs=len(baseline),
        perturbed=Counter(row.condition for row in found.rows if not row.baseline),
        start_ns=min(row.start_ns for row in found.rows),
        readings=readings,
        outcomes=Counter(row.outcome for row in baseline),
        by_status=sum(row.by_status for row in baseline),
        findings=card.findings._replace(costs=ranked_costs(readings)),
        rows=found.rows,
    )


def _forget(row: object) -> None:
    """Nobody needs to know which rows a copy of a window lets go of."""


def recorded_look(recording: Recording, card: Scorecard, finding: Finding | None) -> AgentLook:
    """An agent of a closed recording."""
    state = recording.engine.fleet.agent(card.key)
    recent = [] if state is None else recent_runs(state, state.first_window)
    changes = UNWATCHED if finding is None else changes_found(finding)
    return AgentLook(card, recent, recorded_course(card.rows, recording.settings), changes)


def recent_runs(state: AgentState, window: AgentWindow) -> list[tuple[Run, float | None]]:
    """The last whole runs, with how unlike the others of the window each is."""
    rows = ((run, state.row(run.run_id)) for run in state.recent)
    return [(run, None if row is None else window.path_distance(row).value) for run, row in rows]


def changes_of(engine: Engine, key: AgentKey) -> Changes:
    """What the watching detector of an agent says, within the engine's turn."""
    if engine.monitor is None:
        return OFF
    detector = engine.monitor.detector(key)
    if detector is None:
        return UNWATCHED
    evidence, alarms = detector.evidence(), detector.alarms
    if alarms:
        head, rest = _told(of_alarm(alarms[-1]))
        since = f"Now it learns anew: {evidence.blind:,} more units until a further change can be told."
        more = since if evidence.blind else "No further change since."
        return Changes("changed", head, f"{rest} {more}", tuple(map(_mark, alarms)))
    if evidence.status is Status.WATCHING:
        return Changes(
            "watching", f"No change noticed in {count(evidence.observations, 'unit')}.", _so_far(evidence, engine)
        )
    state = "learning" if evidence.status is Status.LEARNING else "none"
    return Changes(state, *_told(of_evidence(evidence)))


def _so_far(evidence: Evidence, engine: Engine) -> str:
    """How near an alarm is."""
    found = f"{10 ** (evidence.log10 or 0.0):,.3g}"
    return f"The evidence for one is {found}; an alarm takes {engine.settings.change.runs_per_false_alarm:,.0f}."


def changes_found(finding: Finding) -> Changes:
    """What a recording as a whole says."""
    found = finding.found
    marks = tuple(map(_mark, found.alarms)) if isinstance(found, RecordingResult) else ()
    states = {Result.CHANGED: "changed", Result.NO_CHANGE: "watching", Result.NO_RESULT: "none"}
    return Changes(states[finding.verdict], *_told(finding.sentence), marks)


def _mark(alarm: Alarm) -> Mark:
    first = alarm.signals[0]
    return Mark(
        first.since_ns, alarm.noticed_ns, f"{moment(first.since_ns)}: {clean(of_alarm(alarm), LONGEST_SENTENCE)}"
    )


def _told(text: str) -> tuple[str, str]:
    """What is so, and the evidence behind its colon.

    >>> _told("no verdict: it has 3 units"), _told("no change in 90 units")
    (('No verdict:', 'it has 3 units.'), ('No change in 90 units.', ''))
    """
    head, colon, rest = clean(text, LONGEST_SENTENCE).partition(": ")
    return f"{head[:1].upper()}{head[1:]}{':' if colon else '.'}", f"{rest}." if colon else ""
