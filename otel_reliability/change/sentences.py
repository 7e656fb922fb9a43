"""The results of change detection in sentences: for the terminal, the log event and the pages.

They name signals and tools and give numbers; never arguments, tasks, or ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from otel_reliability.change.alarm import Alarm, SignalChange, Summary, ToolShift
from otel_reliability.change.detector import Evidence, Status
from otel_reliability.change.points import MIX, NEW_REQUESTS, ChangePoint
from otel_reliability.change.result import Result
from otel_reliability.change.signals import ALL_SIGNALS
from otel_reliability.model.run import short_value

if TYPE_CHECKING:  # they need numpy, which an agent's process need not load
    from otel_reliability.change.recording import RecordingResult

MAX_ALARMS_SHOWN: Final = 3
"""Maximum alarms of a recording that are written in full: an agent that stays unlike a pinned
reference alarms repeatedly.
"""
MAX_POINTS_NAMED: Final = 3
"""Maximum change points that the sentence of an alarm names, and values that the sentence of a
change point does.
"""
UNCHANGED: Final = "no change found of paths, calls, tokens or failures"
"""The signals in words: not the time that a run takes, nor its cost."""
KINDS: Final[Mapping[str, str]] = {
    "model": "model",
    "reasoning": "level of reasoning",
    "version": "version",
    "prompt": "system prompt",
    "tools": "tool definitions",
    "framework": "instrumentation",
}
"""Kinds of fingerprints in words."""
WORK: Final[Mapping[str, str]] = {
    NEW_REQUESTS: "a new kind of request: {} observations, not seen before, at observation "
    "{observation}",
    MIX: "the mix of requests changed: one kind makes {} → {} of them, at observation "
    "{observation}",
}
"""Changes of the work in words."""


def of_alarm(alarm: Alarm) -> str:
    """Return the sentence of an alarm: since when, by which signals, and what else changed since
    the alarm before.

    >>> calls = SignalChange(
    ...     "calls",
    ...     2e4,
    ...     201,
    ...     1_700_000_000_000_000_000,
    ...     Summary(160, 5.2, 5.0),
    ...     Summary(18, 12.1, 11.0),
    ... )
    >>> print(
    ...     of_alarm(
    ...         Alarm(
    ...             218,
    ...             "run",
    ...             1_700_000_500_000_000_000,
    ...             (calls,),
    ...             (ToolShift("refund", 0.0, 0.64),),
    ...         )
    ...     )
    ... )
    changed about observation 201 (2023-11-14 22:13 UTC), noticed at observation 218: tool calls
    5.2 → 12.1 in the latest 18; refund is used in 0 % → 64 % of the observations
    """
    first = alarm.signals[0]
    since = (
        f"about observation {first.since_observation} ({moment(first.since_ns)}), noticed at "
        f"observation {alarm.observation}"
    )
    named = ", and ".join(
        f"{of_point(point)}, {_distance(first.since_observation - point.observation)}"
        for point in alarm.points[-MAX_POINTS_NAMED:]
    )
    what = [f"what else changed: {named}"] if named else []
    latest = f" in the latest {first.after.observations}" if first.after else ""
    by, *also = map(_change, alarm.signals)
    return f"changed {since}: {'; '.join([by + latest, *also, *map(_tool, alarm.tools), *what])}"


def of_point(point: ChangePoint, alarms: Iterable[Alarm] = ()) -> str:
    """Return the sentence of a change point, and of the first of these alarms that names it.

    >>> of_point(ChangePoint("model", ("gpt-4.1",), ("gpt-5-mini",), 812, "run", 0))
    'model gpt-4.1 → gpt-5-mini at observation 812'
    >>> of_point(ChangePoint(NEW_REQUESTS, (), ("14 of the last 100",), 812, "run", 0))
    'a new kind of request: 14 of the last 100 observations, not seen before, at observation 812'
    """
    if point.kind in WORK:
        return WORK[point.kind].format(*point.before, *point.after, observation=point.observation)
    lost = _values(point.kind, [value for value in point.before if value not in point.after])
    gained = _values(point.kind, [value for value in point.after if value not in point.before])
    what = (
        f"{KINDS[point.kind]} {lost} → {gained}"
        if lost and gained
        else f"{KINDS[point.kind]} {gained} added"
    )
    sentence = f"{what} at observation {point.observation}"
    for alarm in alarms:
        if point in alarm.points:
            later = alarm.since_observation - point.observation
            when = (
                f"{_observations(later)} {'later' if later > 0 else 'earlier'}"
                if later
                else "there"
            )
            return f"{sentence}; behaviour changed {when}: {'; '.join(map(_change, alarm.signals))}"
    return sentence


def _values(kind: str, values: Sequence[str]) -> str:
    shown = [short_value(kind, value) for value in values[:MAX_POINTS_NAMED]]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _distance(observations: int) -> str:
    if not observations:
        return "where the change begins"
    when = "before" if observations > 0 else "after"
    return f"{_observations(observations)} {when} the change begins"


def _observations(number: int) -> str:
    return "1 observation" if abs(number) == 1 else f"{abs(number)} observations"


def of_recording(recording: RecordingResult) -> str:
    """Return the sentence of a recording's result."""
    if recording.result is Result.NO_RESULT:
        return f"no result: {recording.why}"
    if recording.result is Result.NO_CHANGE:
        return f"{UNCHANGED} in {recording.observations} observations"
    shown = "; then ".join(map(of_alarm, recording.alarms[:MAX_ALARMS_SHOWN]))
    more = len(recording.alarms) - MAX_ALARMS_SHOWN
    return (
        f"{shown}; and {more} more, the last at observation {recording.alarms[-1].observation}"
        if more > 0
        else shown
    )


def of_evidence(evidence: Evidence, runs_per_false_alarm: float) -> str:
    """Return the sentence of a detector's reading; an alarm needs evidence of
    `runs_per_false_alarm`.
    """
    if evidence.status in {Status.BLOCKS, Status.SHORT_REFERENCE}:
        return f"no result: {evidence.status.value}"
    if evidence.blind:
        return f"collecting a baseline: {evidence.blind:,} more observations"
    found = f"the evidence for one is {10 ** (evidence.log10 or 0.0):,.3g}"
    return (
        f"{UNCHANGED} in {evidence.observations:,} observations: {found}, an alarm needs "
        f"{runs_per_false_alarm:,.0f}"
    )


def moment(ns: int) -> str:
    """Return a Unix time in nanoseconds, to the minute.

    >>> moment(0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d %H:%M} UTC"


def _change(change: SignalChange) -> str:
    return (
        f"{ALL_SIGNALS[change.signal].words} {_shift(change.signal, change.before, change.after)}"
    )


def _shift(signal: str, before: Summary | None, after: Summary | None) -> str:
    share = ALL_SIGNALS[signal].unit == "{ratio}"
    return " → ".join(
        "unknown" if side is None else _mean(side.mean, share=share) for side in (before, after)
    )


def _mean(mean: float, *, share: bool) -> str:
    if share:
        return _percent(mean)
    return f"{mean:.3g}" if mean < 1_000 else f"{mean:,.0f}"


def _tool(shift: ToolShift) -> str:
    return (
        f"{shift.tool} is used in {_percent(shift.before)} → {_percent(shift.after)} of the "
        "observations"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
