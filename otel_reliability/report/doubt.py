"""Doubt: a sentence where the runs behind a result are too few to support it."""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_reliability.metrics.passes.run_counts import confidence_band, recommend_runs
from otel_reliability.metrics.uncertainty import SHARES
from otel_reliability.report.groups import ALL_SPECS
from otel_reliability.report.target import GateTarget
from otel_reliability.report.text import count, measured, percent
from otel_reliability.report.view import AgentView
from otel_reliability.report.words import is_bounded
from otel_reliability.statistics.intervals import wilson

MIN_DIFFERENCE: Final = 0.005
"""Rates nearer than half a point are the same to a reader: then the runs for ±5 points are named."""
GATE_DIFFERENCE: Final = 0.15
"""The difference between 0.8 and 0.95, which a gate should distinguish."""


class Rate(NamedTuple):
    """The runs that have it, of so many, and the rate at which the result turns."""

    having: int
    runs: int
    turns: float


def doubt(target: GateTarget, agent: AgentView, task: str | None) -> str:
    """Return why the runs do not decide this target; empty where they do, or where nothing is known of it."""
    rate = _rate(target, agent, task)
    if rate is not None:
        return _of_rate(rate)
    reading = None if target.task is not None else agent.metrics.get(target.name)
    if reading is None or reading.low is None or reading.high is None:
        return ""
    if not reading.low < target.wanted < reading.high:
        return ""
    runs = f"{count(reading.runs, 'run')} do not decide this"
    if not is_bounded(ALL_SPECS[target.name], reading):
        return f"{runs}: they are too few to bound the value at 95 % confidence."
    low, high = (measured(ALL_SPECS[target.name], bound) for bound in (reading.low, reading.high))
    return f"{runs}: at 95 % confidence the value lies between {low} and {high}."


def few_runs(runs: int) -> str:
    """Return what so few runs can distinguish; empty where they are enough to distinguish 0.8 from 0.95.

    >>> few_runs(5)
    '5 runs cannot distinguish 0.8 from 0.95: they pin a rate to ±44 points. ±10 points take 97 runs, ±5 points 385.'
    """
    band = confidence_band(runs) if runs else 1.0
    if band < GATE_DIFFERENCE / 2:
        return ""
    some, all_runs = recommend_runs(0.1), recommend_runs(0.05)
    pinned = f"they pin a rate to ±{band * 100:.0f} points. ±10 points take {some} runs, ±5 points {all_runs}."
    if band < GATE_DIFFERENCE:
        return f"{count(runs, 'run')} barely distinguish 0.8 from 0.95: {pinned}"
    return f"{count(runs, 'run')} cannot distinguish 0.8 from 0.95: {pinned}"


def _rate(target: GateTarget, agent: AgentView, task: str | None) -> Rate | None:
    """Return the share of runs that a target is a bound on, if it is one."""
    reading = agent.metrics.get(target.name)
    if target.task is None and target.name in SHARES and reading is not None and reading.value is not None:
        return Rate(round(reading.value * reading.runs), reading.runs, target.wanted)
    if target.name == "reliability.passhat_k":
        attempts = next(each for each in agent.passes.tasks if each.task_id == task)
        return Rate(attempts.passed, attempts.runs, _root(target.wanted / 100, attempts.runs))
    series, _, k = target.name.partition(".")
    if series not in {"pass_hat_k", "pass_at_k"} or not k or (k != "1" and len(agent.passes.tasks) > 1):
        return None
    missed = _root(1 - target.wanted, int(k))
    turns = _root(target.wanted, int(k)) if series == "pass_hat_k" else 1 - missed
    return Rate(agent.passed, agent.known, turns)


def _root(share: float, k: int) -> float:
    return max(share, 0.0) ** (1 / k)


def _of_rate(rate: Rate) -> str:
    low, high = wilson(rate.having, rate.runs)
    if not low < rate.turns < high:
        return ""
    found, runs = rate.having / rate.runs, count(rate.runs, "run")
    pinned = f"(Wilson, 95 %); {runs} pin a rate to ±{confidence_band(rate.runs) * 100:.0f} points at worst"
    told = f"{rate.having} of {rate.runs} is {percent(low)} to {percent(high)} {pinned}"
    apart = abs(found - rate.turns)
    if apart < MIN_DIFFERENCE:
        return f"{runs} do not decide this: {told}. ±5 points take {recommend_runs(0.05)} runs."
    needed = f"To distinguish them takes {recommend_runs(round(apart, 3)):,} runs"
    return f"{runs} cannot distinguish {found:.3g} from {rate.turns:.3g}: {told}. {needed}."
