"""Caveats: what limits the numbers of an agent, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from otel_reliability.metrics.stability.context_growth import growths
from otel_reliability.metrics.stability.flag import CONTEXT_GROWTH, RANDOM_STEPS, TOKEN_PRESSURE_HIGH
from otel_reliability.model.row import Row
from otel_reliability.report.text import clean, count, percent
from otel_reliability.report.view import AgentView

LIMITING: Final = ("unknown", "left out")
"""Words of notes that limit what a value means; other notes explain it."""


def caveats_of(agent: AgentView, rows: Sequence[Row]) -> list[str]:
    """Return the caveats of an agent whose window holds these rows."""
    return [*_of_flags(agent, rows), *_of_window(agent, rows), *_of_outcomes(agent), *_of_readings(agent)]


def _of_flags(agent: AgentView, rows: Sequence[Row]) -> Iterator[str]:
    pressure = agent.metrics["token_budget_pressure"].value
    if TOKEN_PRESSURE_HIGH in agent.flags and pressure is not None:
        yield f"UNSTABLE by token pressure: the context window is {percent(pressure)} full on average ({TOKEN_PRESSURE_HIGH})"
    predictability = agent.metrics["step_predictability"].value
    if RANDOM_STEPS in agent.flags and predictability is not None:
        determined = f"the current step determines {percent(max(predictability, 0.0))} of the next"
        yield f"chooses its tools as if at random: {determined} ({RANDOM_STEPS})"
    if CONTEXT_GROWTH in agent.flags:
        soonest = growths(rows)[0]
        rate = f"{percent(soonest.filled)} full at turn {soonest.turns}, {percent(soonest.slope)} more each turn"
        until = f"{'at this rate full' if soonest.turns_left else 'full'} at turn {soonest.full_at}"
        yield f"the context window of session {clean(soonest.session_id)} is {rate}: {until} ({CONTEXT_GROWTH})"


def _of_window(agent: AgentView, rows: Sequence[Row]) -> Iterator[str]:
    if agent.runs_left_out:
        yield f"{count(agent.runs_left_out, 'older run')} left out: the report covers the newest {len(rows):,}"
    effective = agent.metrics["window.effective_runs"].value
    if effective is not None and round(effective) < agent.runs:
        yield f"the runs were sampled at different rates: they are worth {effective:.0f} equally sampled ones"
    weighted = sum(row.weight for row in rows)
    if weighted > len(rows):
        yield f"the runs are a sample and stand for about {weighted:,}; the numbers are of the runs as they are"


def _of_outcomes(agent: AgentView) -> Iterator[str]:
    by_status = agent.outcomes["by_status"]
    if by_status:
        yield (
            f"{by_status} of {count(agent.passed, 'success')} rest on no more than an end without error "
            "(outcome.fallback: status): pass rates built on them are too high"
        )


def _of_readings(agent: AgentView) -> Iterator[str]:
    """Yield each limiting note once, with the names of all numbers that have it."""
    found: dict[str, list[str]] = {}
    for name, reading in agent.metrics.items():
        if reading.value is not None and any(word in reading.note for word in LIMITING):
            found.setdefault(reading.note, []).append(name)
    for note, names in found.items():
        yield f"{note} ({', '.join(names)})"
