"""What one run tells its session: a trace's signals, judged or derived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from otel_reliability.metrics.sessions.bare import Four
from otel_reliability.metrics.sessions.signals import LOOP_DETECTION, SIGNALS, TOOL_CORRECTNESS
from otel_reliability.model.run import Run
from otel_reliability.model.tool_calls import ToolCall, ToolCalls
from otel_reliability.windows.compiled import usual_trace_of
from otel_reliability.windows.rows import signals_of

Trace: TypeAlias = tuple[int, str, int, float | None, float | None, float | None, float | None, tuple[str, ...]]
"""A run as its session keeps it: its start, its id, its end, the score of each of `SIGNALS` or None, and the names of those that
we computed ourselves, sorted. A plain tuple, which costs no looks for garbage; traces compare by when they began.
"""
START: Final = 0
RUN_ID: Final = 1
END: Final = 2
DERIVED: Final = 7
_NOTHING: Final = (None, None, None, None)
BOTH: Final = (LOOP_DETECTION, TOOL_CORRECTNESS)


def trace_of(run: Run, derive: bool) -> tuple[Trace, tuple[str, ...]]:
    """The signals of a run: the scores of its evaluations of those names. With it those whose score was not from 0 to 1.

    Where loop_detection or tool_correctness did not arrive they are derived from the tool calls, if `derive` says so and
    there are any.
    """
    usual: Trace | None = usual_trace_of(run, BOTH) if derive else None
    if usual is not None:
        return usual, ()
    derived = derived_signals(run.tool_calls) if derive else None
    if not run.evaluations:
        if derived is None:
            return (run.start_ns, run.run_id, run.end_ns, *_NOTHING, ()), ()
        return (run.start_ns, run.run_id, run.end_ns, None, *derived, None, BOTH), ()
    judged = {name: score for name, score in signals_of(run.evaluations) if name in SIGNALS}
    sound = {name: score for name, score in judged.items() if 0.0 <= score <= 1.0}
    added = (
        {} if derived is None else {name: score for name, score in zip(BOTH, derived, strict=True) if name not in sound}
    )
    confidence, loops, tools, coherence = [sound.get(name, added.get(name)) for name in SIGNALS]
    refused = tuple([name for name in judged if name not in sound])
    return (run.start_ns, run.run_id, run.end_ns, confidence, loops, tools, coherence, tuple(added)), refused


def scores_in(trace: Trace) -> Four:
    """The scores that a trace has."""
    return trace[3:7]


def signals_by_name(trace: Trace) -> dict[str, float]:
    """The signals that a trace has.

    >>> signals_by_name((0, "run", 1, 0.5, None, None, 1.0, ()))
    {'confidence': 0.5, 'coherence': 1.0}
    """
    return {name: score for name, score in zip(SIGNALS, scores_in(trace), strict=True) if score is not None}


def derived_signals(calls: Sequence[ToolCall] | None) -> tuple[float, float] | None:
    """loop_detection = 1 − share of repeats, tool_correctness = 1 − share of failed calls; nothing without tool calls.

    >>> derived_signals(())
    """
    number = 0 if calls is None else len(calls)
    if calls is None or not number:
        return None
    told = ToolCalls.of(calls)
    repeats, failed = told.repeats, told.failed
    return 1.0 - repeats / number if repeats else 1.0, 1.0 - failed / number if failed else 1.0
