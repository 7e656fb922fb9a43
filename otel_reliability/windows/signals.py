"""What one run tells its session: a trace's signals, judged or derived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from otel_reliability.metrics.sessions.signals import LOOP_DETECTION, SIGNALS, TOOL_CORRECTNESS
from otel_reliability.model.run import Run, ToolCall
from otel_reliability.windows.rows import signals_of


class Trace(NamedTuple):
    """A run as its session keeps it. Traces compare by when they began.

    `derived` names the signals that we computed ourselves, `refused` those whose score was not from 0 to 1.
    """

    start_ns: int
    run_id: str
    end_ns: int
    signals: Mapping[str, float]
    derived: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def trace_of(run: Run, derive: bool) -> Trace:
    """The signals of a run: the scores of its evaluations of those names.

    Where loop_detection or tool_correctness did not arrive they are derived from the tool calls, if `derive` says so and
    there are any.
    """
    if not run.evaluations:
        derived = derived_signals(run.tool_calls) if derive else {}
        return Trace(run.start_ns, run.run_id, run.end_ns, derived, tuple(derived))
    judged = {name: score for name, score in signals_of(run.evaluations) if name in SIGNALS}
    sound = {name: score for name, score in judged.items() if 0.0 <= score <= 1.0}
    derived = derived_signals(run.tool_calls) if derive else {}
    added = {name: score for name, score in derived.items() if name not in sound}
    refused = tuple(name for name in judged if name not in sound)
    return Trace(run.start_ns, run.run_id, run.end_ns, {**sound, **added}, tuple(added), refused)


def derived_signals(calls: tuple[ToolCall, ...] | None) -> dict[str, float]:
    """loop_detection = 1 − share of repeats, tool_correctness = 1 − share of failed calls; nothing without tool calls.

    >>> derived_signals(())
    {}
    """
    if not calls:
        return {}
    return {
        LOOP_DETECTION: 1.0 - len([None for call in calls if call.repeat]) / len(calls),
        TOOL_CORRECTNESS: 1.0 - len([None for call in calls if not call.ok]) / len(calls),
    }
