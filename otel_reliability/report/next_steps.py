"""Next steps: what to do about an agent, the most useful first, each a command or a change at the
source.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice
from typing import Final

from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.base import UNKNOWN_INPUTS
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.report.findings import FAILED_CALLS
from otel_reliability.report.text import clean, count, instant, percent, trace_of
from otel_reliability.report.view import AgentView
from otel_reliability.statistics.intervals import MIN_RUNS, wilson

MAX_STEPS: Final = 3
MIN_POINTS: Final = 1.0
"""Points from which a penalty is worth a step."""
MANY_REPEATS: Final = 1.0
"""Repeated calls a run from which an agent goes in circles."""
PROGRAM: Final = "otel-reliability"


def next_steps(agent: AgentView, source: str = "FILE") -> list[str]:
    """Return at most three steps. `source` is how a command line names the recording."""
    return list(islice(_steps(agent, source), MAX_STEPS))


def _steps(agent: AgentView, source: str) -> Iterator[str]:
    name = f"--agent {shlex.quote(clean(agent.agent))}"
    for flaw in agent.data_quality:
        if flaw.decisive:
            yield f"Repair the telemetry first, {flaw.finding}: {flaw.remedy}"
            break
    if agent.shift is not None and agent.shift.is_worse:
        command = f"{PROGRAM} report {source} {name} --since {instant(agent.shift.since)[:19]}Z"
        deployed = "" if agent.shift.other_work else ", and what was deployed then"
        yield f"Inspect the runs since then{deployed}: {command}"
    failed = [end for end in agent.ends if end.failed]
    if failed:
        trace = trace_of(failed[-1].run_id)
        yield f"Open the latest failed run in your trace store: {trace}"
    yield from _of_calls(agent)
    yield from _of_loops(agent)
    yield from _of_score(agent)
    yield from _of_few_runs(agent)
    yield from _of_gaps(agent)
    yield from _guard(agent, source, name)


def _of_calls(agent: AgentView) -> Iterator[str]:
    """Yield where to see the calls that fail."""
    for reason in agent.findings.reasons:
        if reason.title == FAILED_CALLS and reason.details:
            trace = reason.details[0].partition(" ")[0]
            share = percent(agent.metrics["failed_call_share"].value or 0.0)
            yield f"Find out why {share} of the tool calls fail; the latest are in trace {trace}"


def _of_loops(agent: AgentView) -> Iterator[str]:
    """Yield what helps against calls that are repeated in every run: they cost no points."""
    if _loops(agent):
        yield f"{ALL_SPECS['loops'].improve} ({PROGRAM} explain loops)"


def _loops(agent: AgentView) -> bool:
    return (agent.metrics["loops"].value or 0.0) >= MANY_REPEATS


def _of_score(agent: AgentView) -> Iterator[str]:
    """Yield how to win back the most points."""
    costs = [cost for cost in agent.findings.costs if (cost.points or 0.0) >= MIN_POINTS]
    if costs and agent.tier is not Tier.STABLE:
        spec = ALL_SPECS[max(costs, key=lambda cost: cost.points or 0.0).name]
        yield f"{spec.improve} ({PROGRAM} explain {spec.name})"


def _of_gaps(agent: AgentView) -> Iterator[str]:
    """Yield the data without which the verdict is weak: outcomes, and what the runs worked on."""
    gaps = {gap.missing: gap for gap in agent.missing}
    if agent.success_rate is None and "outcomes" in gaps:
        yield f"Record whether each run succeeded: {gaps['outcomes'].remedy}"
    if UNKNOWN_INPUTS in agent.metrics["score"].note and "task ids" in gaps:
        yield f"Record what each run works on: {gaps['task ids'].remedy}"


def _of_few_runs(agent: AgentView) -> Iterator[str]:
    if agent.runs < MIN_RUNS:
        few = f"{count(agent.runs, 'run')} {'shows' if agent.runs == 1 else 'show'} little"
        yield f"Record more runs: {few}; intervals begin at {MIN_RUNS}"


def _guard(agent: AgentView, source: str, name: str) -> Iterator[str]:
    """Yield the gate that holds what the agent does now; none for an agent that is not stable, goes
    in circles, or of which more runs fail than before.
    """
    is_worse = agent.shift is not None and agent.shift.is_worse
    is_stable = agent.grade is Tier.STABLE and not agent.flags and not is_worse
    if not is_stable or agent.runs < MIN_RUNS or _loops(agent):
        return
    low = agent.metrics["score"].low
    targets = [] if low is None else [f"score>={low // 5 * 5:.0f}"]
    if agent.success_rate is not None:
        least = int(20.0 * wilson(agent.passed, agent.known)[0]) / 20
        targets.append(f"success_rate>={least:g}")
    if not targets:
        return
    required = " ".join(f"--require '{target}'" for target in targets)
    yield f"Keep it so in CI: {PROGRAM} gate {source} {name} {required}"
