"""The signals of one run for its session: evaluated, or derived from its tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_reliability.metrics.sessions.bare import Four
from otel_reliability.metrics.sessions.signals import LOOP_DETECTION, SIGNALS, TOOL_CORRECTNESS
from otel_reliability.model.run import Run, ToolCall
from otel_reliability.windows.rows import signals_of

DERIVABLE: Final = (LOOP_DETECTION, TOOL_CORRECTNESS)


class Trace(NamedTuple):
    """A run as its session keeps it, sorted by start: the score of each of `SIGNALS` or None, and which are derived."""

    start_ns: int
    run_id: str
    end_ns: int
    confidence: float | None
    loop_detection: float | None
    tool_correctness: float | None
    coherence: float | None
    derived: tuple[str, ...]


def trace_of(run: Run, derive: bool) -> tuple[Trace, tuple[str, ...]]:
    """Return the signals of a run, and the names of the evaluations refused because their score was not from 0 to 1.

    With `derive`, loop_detection and tool_correctness are derived from the tool calls where no evaluation gives them.
    """
    evaluated = {name: score for name, score in signals_of(run.evaluations) if name in SIGNALS}
    found = {name: score for name, score in evaluated.items() if 0.0 <= score <= 1.0}
    refused = tuple([name for name in evaluated if name not in found])
    derived = derived_signals(run.tool_calls) if derive else None
    added = () if derived is None else tuple([name for name in DERIVABLE if name not in found])
    if derived is not None:
        found = {**dict(zip(DERIVABLE, derived, strict=True)), **found}
    confidence, loops, tools, coherence = [found.get(name) for name in SIGNALS]
    return Trace(run.start_ns, run.run_id, run.end_ns, confidence, loops, tools, coherence, added), refused


def scores_in(trace: Trace) -> Four:
    """Return the score of each of `SIGNALS`."""
    return trace[3:7]


def signals_by_name(trace: Trace) -> dict[str, float]:
    """Return the signals that a trace has.

    >>> signals_by_name(Trace(0, "run", 1, 0.5, None, None, 1.0, ()))
    {'confidence': 0.5, 'coherence': 1.0}
    """
    return {name: score for name, score in zip(SIGNALS, scores_in(trace), strict=True) if score is not None}


def derived_signals(calls: Sequence[ToolCall] | None) -> tuple[float, float] | None:
    """Return loop_detection = 1 − share of repeats and tool_correctness = 1 − share of failed calls; None without calls.

    >>> derived_signals(())
    """
    if not calls:
        return None
    repeats, failed = sum([call.repeat for call in calls]), sum([not call.ok for call in calls])
    return 1.0 - repeats / len(calls), 1.0 - failed / len(calls)
