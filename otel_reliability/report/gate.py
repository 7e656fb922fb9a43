"""Targets → results: does this recording meet what was required of it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from otel_reliability.change.result import Result
from otel_reliability.errors import ConfigurationError
from otel_reliability.loading import nearest
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.passes.run_counts import confidence_band, recommend_runs
from otel_reliability.metrics.passes.summary import TARGET_PREFIX, TARGETS
from otel_reliability.metrics.success.verdict import Verdict, only_fails_now, success_bound
from otel_reliability.metrics.uncertainty import SHARES
from otel_reliability.report.build import nearest_agent
from otel_reliability.report.changes import ChangeResult, finding_object
from otel_reliability.report.findings import FAILURES, WASTE
from otel_reliability.report.sections import points_lost
from otel_reliability.report.shift import about_shift
from otel_reliability.report.target import SERIES, WORDS, GateTarget
from otel_reliability.report.text import agent_name, clean, count, grouped, measured, percent
from otel_reliability.report.view import AgentView, ReadingView, ReportView
from otel_reliability.report.words import (
    about_success,
    coverage,
    in_a_row,
    is_bounded,
    missing,
    warnings,
)
from otel_reliability.statistics.intervals import MIN_RUNS, wilson

WINDOW: Final = frozenset(name for name, spec in ALL_SPECS.items() if spec.family == "window")
"""Numbers that are about the window itself: one run is enough to know them."""
REQUIRE_MORE: Final = (
    "--min-runs N (min_runs=N in a test) lets no target hold on fewer than N runs."
)
MAX_RESULTS: Final = 5
"""Results of one target that are shown; the others are counted."""
NO_DATA: Final = ReadingView(None, 0)
MAX_REASONS: Final = 2
"""Reasons of one failed target that are shown."""
ABOUT_SUCCESS: Final = frozenset({"reliability", "pass_hat_k", "pass_at_k"})
"""First words of targets that are about outcomes, beside the metrics of success."""
MIN_DIFFERENCE: Final = 0.005
"""Rates nearer than half a point are the same to a reader: then the runs for ±5 points are named.
"""


class TargetState(Enum):
    """The state of a target, and the exit code it asks for."""

    HELD = 0
    FAILED = 1
    MISSING = 3


class TargetResult(NamedTuple):
    """One number compared with a target. `agent` None: no agent has a run.

    `why` says what is missing, `doubt` why the runs do not decide it, `reasons` what is behind a
    failed one: the largest penalties, or the runs and tasks that fail. `most` is the upper bound of
    a success rate that is not known, where that is too low already.
    """

    target: GateTarget
    agent: AgentView | None
    task: str | None
    reading: ReadingView
    state: TargetState
    why: str = ""
    doubt: str = ""
    reasons: tuple[str, ...] = ()
    most: float | None = None

    @property
    def subject(self) -> str:
        if self.agent is None:
            return "the recording"
        return agent_name(self.agent.key) + (
            "" if self.task is None else f", task {clean(self.task)}"
        )

    @property
    def sentence(self) -> str:
        """The agent, the metric, its value, the bound and the runs; or what is missing."""
        target = self.target
        value = self.reading.value
        words = {level: word for word, level in WORDS.get(target.name, {}).items()}
        bound = f"{target.sign} {words.get(target.wanted, f'{target.wanted:.12g}')}"
        if self.agent is not None and self.most is not None:
            failed = self.agent.metrics["failed_run_share"]
            known = f"{percent(failed.value or 0.0)} of {count(failed.runs, 'run')}"
            return (
                f"{self.subject}: {target.name} is at most {percent(self.most)}, required {bound} "
                f"({known} failed)"
            )
        if self.why or value is None:
            return f"{self.subject}: {target.name} {bound} is not checked: {self.why}"
        shown = words.get(value) or grouped(value)
        if shown == f"{target.wanted:.4g}" and value != target.wanted:
            shown = f"{value:.12g}"  # rounded to its bound, it would look as if it met it
        parts = [count(self.reading.runs, "run")]
        if self.agent is not None and target.name in {"score", "tier"}:
            parts += filter(None, [coverage(self.agent)])
        return f"{self.subject}: {target.name} is {shown}, required {bound} ({'; '.join(parts)})"


Number: TypeAlias = tuple[AgentView | None, str | None, ReadingView]
"""A number that a target names: its agent, its task, its reading."""

OF_CHANGE: Final = {
    Result.CHANGED: TargetState.FAILED,
    Result.NO_CHANGE: TargetState.HELD,
    Result.NO_RESULT: TargetState.MISSING,
}
"""The state of the requirement that an agent has not changed."""
PRECEDENCE: Final = (TargetState.FAILED, TargetState.MISSING, TargetState.HELD)
SYMBOLS: Final = {
    TargetState.HELD: ("✓", "green"),
    TargetState.FAILED: ("✗", "red"),
    TargetState.MISSING: ("?", "yellow"),
}


def check(report: ReportView, targets: Sequence[GateTarget], min_runs: int) -> list[TargetResult]:
    """Return the results of all targets, in their order; of one target, agent by agent and task by
    task.

    Raises `ConfigurationError` for a target on an agent or a task that has no runs.
    """
    return [
        _result(target, *found, min_runs)
        for target in targets
        for found in (_numbers(report, target) or [(None, None, NO_DATA)])
    ]


def exit_code(results: Sequence[TargetResult], changes: Sequence[ChangeResult] = ()) -> int:
    """Return 1 for a failed target or a change, else 3 where data is missing, else 0."""
    states = _states(results, changes)
    return next((state.value for state in PRECEDENCE if states[state]), 0)


def summary(results: Sequence[TargetResult], changes: Sequence[ChangeResult] = ()) -> str:
    """Return how many requirements held, failed, or lack data.

    >>> summary([])
    'nothing to check'
    """
    states = _states(results, changes)
    words = (
        (TargetState.FAILED, "failed"),
        (TargetState.MISSING, "without enough data"),
        (TargetState.HELD, "held"),
    )
    return (
        ", ".join(f"{states[state]} {word}" for state, word in words if states[state])
        or "nothing to check"
    )


def _states(
    results: Sequence[TargetResult], changes: Sequence[ChangeResult]
) -> Counter[TargetState]:
    return Counter(
        [*(result.state for result in results), *(OF_CHANGE[one.change.result] for one in changes)]
    )


def flagged(results: Sequence[TargetResult]) -> list[str]:
    """Return the warnings of the agents behind results, whatever was required of them."""
    agents = {result.agent.key: result.agent for result in results if result.agent is not None}
    missed = {
        result.agent.key
        for result in results
        if result.agent is not None and result.state is TargetState.FAILED
    }
    return [
        f"{agent_name(key)}: {sentence}"
        for key, agent in agents.items()
        for sentence in (*_unasked(agent, key in missed), *warnings(agent))
    ]


def _unasked(agent: AgentView, is_missed: bool) -> Iterator[str]:
    """Yield that an agent is failing where nothing that is required of it says so, and since when
    its runs fail: a rate over all of them hides that.
    """
    if agent.verdict is Verdict.FAILING and not is_missed:
        ask = agent.metrics.__getitem__
        why, by = about_success(agent), "success_rate or error_rate"
        if only_fails_now(ask):
            why, by = in_a_row(ask("failed_in_a_row")), "verdict or failed_in_a_row"
        yield f"its verdict is failing: {why}; require {by}, too"
    if agent.shift is not None and agent.shift.is_worse:
        yield about_shift(agent.shift)


# --- The numbers a target names -------------------------------------------------------------------


def _numbers(report: ReportView, target: GateTarget) -> list[Number]:
    agents = [agent for agent in report.agents if target.agent in {None, agent.agent}]
    if report.agents and not agents:
        remedy = nearest_agent(str(target.agent), (agent.agent for agent in report.agents))
        raise ConfigurationError("--require", target.agent, "an agent with runs here", remedy)
    found = [each for agent in agents for each in _of_agent(agent, target)]
    if agents and not found and target.task is not None:
        tasks = sorted(
            {task for agent in agents for task in agent.task_outcomes if task is not None}
        )
        raise ConfigurationError(
            "--require", target.task, "a task with runs here", nearest(target.task, tasks)
        )
    return found


def _of_agent(agent: AgentView, target: GateTarget) -> Iterator[Number]:
    if target.name in TARGETS:
        field = target.name.removeprefix(TARGET_PREFIX)
        for task in agent.passes.tasks:
            if target.task in {None, task.task_id}:
                yield (
                    agent,
                    task.task_id,
                    ReadingView(getattr(task.summary, field), task.summary.runs),
                )
        if not agent.passes.tasks and target.task is None:
            yield agent, None, NO_DATA
    elif target.task is not None:
        for line in agent.tasks:
            if line.task_id == target.task:
                yield agent, target.task, ReadingView(getattr(line, target.name), line.runs)
    else:
        yield agent, None, _reading(agent, target.name)


def _reading(agent: AgentView, name: str) -> ReadingView:
    series, _, k = name.partition(".")
    if series in SERIES and k:
        values = agent.passes.pass_at_k if series == "pass_at_k" else agent.passes.pass_hat_k
        return ReadingView(values[k], agent.passes.runs) if k in values else NO_DATA
    return agent.metrics[name]


def _result(
    target: GateTarget,
    agent: AgentView | None,
    task: str | None,
    reading: ReadingView,
    min_runs: int,
) -> TargetResult:
    found = TargetResult(target, agent, task, reading, TargetState.MISSING)
    if agent is not None and reading.value is None:
        most = _most(target, agent, min_runs)
        if most is not None:
            reasons = tuple(reasons_for(target, agent))
            return found._replace(state=TargetState.FAILED, most=most, reasons=reasons)
    if agent is None or reading.value is None:
        return found._replace(why=_missing(target, agent, reading))
    if reading.runs < min_runs:
        return found._replace(why=f"{count(reading.runs, 'run')}, fewer than --min-runs {min_runs}")
    state = TargetState.HELD if target.holds(reading.value) else TargetState.FAILED
    reasons = tuple(reasons_for(target, agent)) if state is TargetState.FAILED else ()
    return found._replace(state=state, doubt=doubt(target, agent, task), reasons=reasons)


def _most(target: GateTarget, agent: AgentView, min_runs: int) -> float | None:
    """Return the most that a success rate which is not known may be, where failed runs leave less
    of it than is required.
    """
    failed = agent.metrics["failed_run_share"]
    if target.name != "success_rate" or target.task is not None or failed.runs < min_runs:
        return None
    most = success_bound(NO_DATA, failed)
    is_floor = target.holds(1.0) and not target.holds(0.0)
    return most if most is not None and is_floor and not target.holds(most) else None


def reasons_for(target: GateTarget, agent: AgentView) -> Iterator[str]:
    """Yield what is behind a number that missed its target: which runs and tasks fail, or what
    lowers the score most, each with its tools, tasks and traces.
    """
    first_word = target.name.partition(".")[0]
    spec = ALL_SPECS.get(target.name)
    of_success = first_word in ABOUT_SUCCESS or (spec is not None and spec.family == "success")
    if target.name == "verdict":
        chosen = list(agent.findings.reasons)
    elif spec is not None and spec.unit == "{usd}":
        chosen = [one for one in agent.findings.reasons if one.title == WASTE]
    elif of_success:
        chosen = [one for one in agent.findings.reasons if one.title in FAILURES]
    else:
        chosen = [one for one in agent.findings.reasons if one.points is not None]
        if spec is not None:
            chosen.sort(key=lambda one: one.title != spec.title)
    for reason in chosen[:MAX_REASONS]:
        cost = "" if reason.points is None else f" {points_lost(reason.points)}"
        yield f"{reason.title}{cost}: {reason.sentence}"
        yield from (f"  {detail}" for detail in reason.details)


def _missing(target: GateTarget, agent: AgentView | None, reading: ReadingView) -> str:
    if agent is None:
        return "no agent has a run here"
    if target.name in TARGETS:
        return "not enough data: it needs 1 run with a known outcome"
    return missing(ALL_SPECS.get(target.name) or ALL_SPECS[target.name.partition(".")[0]], reading)


# --- Doubt: whether the runs behind a result are too few to support it ----------------------------


def doubt(target: GateTarget, agent: AgentView, task: str | None) -> str:
    """Return why the runs do not decide this target; empty where they do, or where nothing is known
    of it.
    """
    rate = _rate(target, agent, task)
    if rate is not None:
        return _doubt_of_rate(*rate) or _few_of_rate(*rate)
    reading = NO_DATA if target.task is not None else agent.metrics.get(target.name, NO_DATA)
    if reading.value is not None and reading.runs < MIN_RUNS and target.name not in WINDOW:
        many = count(reading.runs, "run")
        return f"{many} prove little: {MIN_RUNS} are the fewest that bound a value. {REQUIRE_MORE}"
    if (
        reading.low is None
        or reading.high is None
        or not reading.low < target.wanted < reading.high
    ):
        return ""
    runs = f"{count(reading.runs, 'run')} do not decide this"
    if not is_bounded(ALL_SPECS[target.name], reading):
        return f"{runs}: they are too few to bound the value at 95 % confidence."
    low, high = (measured(ALL_SPECS[target.name], bound) for bound in (reading.low, reading.high))
    return f"{runs}: at 95 % confidence the value lies between {low} and {high}."


def _few_of_rate(having: int, runs: int, _: float) -> str:
    """Return that so few runs prove little, though they decide the target."""
    if runs >= MIN_RUNS:
        return ""
    low, high = wilson(having, runs)
    found = f"{having} of {runs} is {percent(low)} to {percent(high)} (Wilson, 95 %)"
    return f"{count(runs, 'run')} prove little: {found}. {REQUIRE_MORE}"


def _rate(target: GateTarget, agent: AgentView, task: str | None) -> tuple[int, int, float] | None:
    """Return (runs that have it, all runs, share at which the result turns), if the target is a
    bound on a share of runs.
    """
    reading = agent.metrics.get(target.name)
    if (
        target.task is None
        and target.name in SHARES
        and reading is not None
        and reading.value is not None
    ):
        return round(reading.value * reading.runs), reading.runs, target.wanted
    if target.name == "reliability.passhat_k":
        attempts = next(each for each in agent.passes.tasks if each.task_id == task)
        return (
            attempts.passed,
            attempts.summary.runs,
            _root(target.wanted / 100, attempts.summary.runs),
        )
    series, _, k = target.name.partition(".")
    if (
        series not in {"pass_hat_k", "pass_at_k"}
        or not k
        or (k != "1" and len(agent.passes.tasks) > 1)
    ):
        return None
    missed = _root(1 - target.wanted, int(k))
    turns = _root(target.wanted, int(k)) if series == "pass_hat_k" else 1 - missed
    return agent.passed, agent.known, turns


def _root(share: float, k: int) -> float:
    return max(share, 0.0) ** (1 / k)


def _doubt_of_rate(having: int, runs: int, turns: float) -> str:
    low, high = wilson(having, runs)
    share = having / runs
    if not (low < turns < high or share == turns):  # none of 20 meets a bound of 0 by chance, too
        return ""
    many = count(runs, "run")
    pinned = (
        f"(Wilson, 95 %); {many} pin a rate to ±{confidence_band(runs) * 100:.0f} points at worst"
    )
    found = f"{having} of {runs} is {percent(low)} to {percent(high)} {pinned}"
    apart = abs(share - turns)
    if apart < MIN_DIFFERENCE:
        return f"{many} do not decide this: {found}. ±5 points take {recommend_runs(0.05)} runs."
    needed = f"To distinguish them takes {recommend_runs(round(apart, 3)):,} runs"
    return f"{many} cannot distinguish {share:.3g} from {turns:.3g}: {found}. {needed}."


# --- Terminal and JSON ----------------------------------------------------------------------------


def render(
    results: Sequence[TargetResult], changes: Sequence[ChangeResult], console: Console
) -> None:
    """Print each target with its value, bound and number of runs; what failed comes first."""
    for target in dict.fromkeys(result.target for result in results):
        ranked = sorted(
            (each for each in results if each.target == target),
            key=lambda each: PRECEDENCE.index(each.state),
        )
        for result in ranked[:MAX_RESULTS]:
            _print(result.sentence, result.state, result.doubt, console)
            for line in result.reasons:
                console.print(Padding(Text(line), (0, 0, 0, 2)))
        rest = ranked[MAX_RESULTS:]
        if rest:
            more = f"and {count(len(rest), 'more number')} of {target.text}: {summary(rest)}"
            console.print(Padding(Text(more, "dim"), (0, 0, 0, 2)))
    for one in sorted(changes, key=lambda one: PRECEDENCE.index(OF_CHANGE[one.change.result])):
        _print(
            f"{one.name}: {one.change.sentence}",
            OF_CHANGE[one.change.result],
            one.change.note,
            console,
        )
    console.print()
    console.print(Text(summary(results, changes), "bold"))
    for sentence in flagged(results):
        console.print(Text(f"⚠ {sentence}", "yellow"))


def _print(sentence: str, state: TargetState, more: str, console: Console) -> None:
    symbol, colour = SYMBOLS[state]
    console.print(Text.assemble((f"{symbol} ", colour), sentence))
    if more:
        console.print(Padding(Text(more, "dim"), (0, 0, 0, 2)))


def document(
    results: Sequence[TargetResult], changes: Sequence[ChangeResult] = ()
) -> dict[str, Any]:
    """Return all results in plain values."""
    return {
        "exit_code": exit_code(results, changes),
        "summary": summary(results, changes),
        "flagged": flagged(results),
        "verdicts": [_object(result) for result in results],
        "changes": [
            {**finding_object(one), "state": OF_CHANGE[one.change.result].name.lower()}
            for one in changes
        ],
    }


def _object(result: TargetResult) -> dict[str, Any]:
    return {
        "target": result.target.text,
        "agent": None if result.agent is None else result.agent.agent,
        "task": result.task,
        "value": result.reading.value,
        "bound": result.target.wanted,
        "runs": result.reading.runs,
        "low": result.reading.low,
        "high": result.reading.high,
        "state": result.state.name.lower(),
        "sentence": result.sentence,
        "why": result.why,
        "doubt": result.doubt,
        "reasons": list(result.reasons),
    }
