"""Targets that are tested while an experiment runs, at every result, by sequential tests.

A rate is the mean over the tasks of an experiment, each with as many attempts as the others. Of all
targets together, one is decided wrongly with a probability of at most `ALPHA` (Bonferroni).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.experiments.journal import AttemptResult
from otel_reliability.model.row import BASELINE
from otel_reliability.report.target import GateTarget
from otel_reliability.statistics.sequential import (
    SHARE,
    Range,
    SequentialDecision,
    decide,
    interval,
)

ALPHA: Final = 0.05
_SERIES: Final = ("pass_hat_k", "pass_at_k")
_ROBUSTNESS: Final = {f"{name}_robustness": name for name in ("fault", "structure", "prompt")}
DIFFERENCE: Final = "success_difference"
"""Success of an attempt − that of the attempt of an earlier experiment at the same task with the
same number.
"""
MARGIN: Final = 0.05
"""Loss of success rate that still counts as none."""
_SIGNS: Final = (">=", ">", "<=", "<")

Trials: TypeAlias = Mapping[int, AttemptResult]
"""The results of a task under a condition, by the number of the trial."""
Values: TypeAlias = Mapping[int, float]
"""The observations of a task, by the round they belong to."""


class TargetData(NamedTuple):
    """The observations that a target is about: how often each value was seen, how many the last
    round lacks, and their range. `rate` is the mean that is compared with `wanted`.
    """

    counts: Mapping[float, int]
    missing: int
    within: Range = SHARE


class Results:
    """All results so far, by condition, task and trial. `earlier`: those of an earlier experiment,
    to compare with.
    """

    def __init__(self, task_ids: Sequence[str], earlier: Results | None = None) -> None:
        self.earlier = earlier
        self.task_ids = tuple(task_ids)
        self.all: list[AttemptResult] = []
        self._trials: dict[tuple[str, str], dict[int, AttemptResult]] = {}

    def add(self, result: AttemptResult) -> None:
        self.all.append(result)
        self._trials.setdefault((result.condition, result.task_id), {})[result.trial] = result

    def of(self, condition: str, task_id: str) -> Trials:
        return self._trials.get((condition, task_id), {})


class SequentialTest:
    """One target. `decision` stays once it is made: what came later cannot take it back."""

    def __init__(self, target: GateTarget, task_ids: Sequence[str], alpha: float) -> None:
        self.target = target
        self.task_ids = tuple(task_ids)
        self.decision = SequentialDecision.UNDECIDED
        self.runs = 0
        """Attempts that the decision rests on."""
        self._alpha = alpha
        self._observed = TargetData({}, 0)

    def update(self, results: Results) -> None:
        """Read all results, unless the target is decided."""
        if self.decision is not SequentialDecision.UNDECIDED:
            return
        self._observed = seen = observed_by(self.target, self.task_ids, results)
        self.runs = len([one for one in results.all if one.task_id in self.task_ids])
        wanted = self._wanted
        if self.target.sign in {">=", ">"}:
            self.decision = decide(
                seen.counts, wanted, self._alpha, missing=seen.missing, within=seen.within
            )
            return
        mirrored = {-value: number for value, number in seen.counts.items()}
        within = Range(-seen.within.high, -seen.within.low)
        self.decision = decide(mirrored, -wanted, self._alpha, missing=seen.missing, within=within)

    @property
    def mean(self) -> float | None:
        """The mean of the observations so far; of a kept share, the mean difference."""
        number = sum(self._observed.counts.values())
        total = sum(value * many for value, many in self._observed.counts.items())
        return total / number if number else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The confidence interval of the mean, which holds at every look. It lies on one side of
        the target as soon as that is decided.
        """
        seen = self._observed
        return interval(seen.counts, 2 * self._alpha, missing=seen.missing, within=seen.within)

    @property
    def _wanted(self) -> float:
        return 0.0 if self.target.name in _ROBUSTNESS else self.target.wanted

    @property
    def sentence(self) -> str:
        """The target, its decision, and what it rests on."""
        name = f"{self.target.text}: {self.decision.value.upper()}"
        if self.mean is None:
            return f"{name}; no attempts yet"
        low, high = self.bounds
        of = (
            f"mean difference is {self.mean:.3f}"
            if self.target.name == DIFFERENCE
            else f"mean of condition − {self.target.wanted:g} × baseline is {self.mean:.3f}"
            if self.target.name in _ROBUSTNESS
            else f"{self.mean:.3f}"
        )
        tasks = len(self.task_ids)
        over = f" over {tasks} tasks" if tasks > 1 else ""
        level = f"{100 * (1 - 2 * self._alpha):g} %"
        return (
            f"{name} after {self.runs} attempts{over}: {of}, {level} interval "
            f"{low:.3f} to {high:.3f}"
        )


def tests_of(
    targets: Iterable[GateTarget], task_ids: Sequence[str], conditions: Sequence[str]
) -> list[SequentialTest]:
    """Return the tests of those targets that can be decided early; the others are checked in the
    recording at the end.
    """
    chosen = [target for target in targets if is_sequential(target, conditions)]
    return [SequentialTest(target, task_ids, ALPHA / len(chosen)) for target in chosen]


def is_sequential(target: GateTarget, conditions: Sequence[str]) -> bool:
    """Return whether a target can be decided while the experiment runs: a bound on a rate of the
    attempts under its conditions, over all tasks and agents.
    """
    series, _, k = target.name.partition(".")
    known = (
        target.name in {"success_rate", "error_rate", DIFFERENCE}
        or _ROBUSTNESS.get(target.name) in conditions
        or (series in _SERIES and k)
    )
    return bool(known) and target.sign in _SIGNS and target.agent is target.task is None


def observed_by(target: GateTarget, task_ids: Sequence[str], results: Results) -> TargetData:
    """Return the observations of all tasks."""
    values_of, within = _reader(target)
    tasks = [values_of(results, task_id) for task_id in task_ids]
    rounds = 1 + max((each for values in tasks for each in values), default=-1)
    counts = Counter(value for values in tasks for value in values.values())
    return TargetData(counts, rounds * len(tasks) - counts.total(), within)


def _reader(target: GateTarget) -> tuple[Callable[[Results, str], Values], Range]:
    name = target.name
    if name in _ROBUSTNESS:
        kept = target.wanted
        condition = _ROBUSTNESS[name]
        return lambda results, task: _kept(results, task, condition, kept), Range(-kept, 1.0)
    if name == DIFFERENCE:
        return _difference, Range(-1.0, 1.0)
    series, _, k = name.partition(".")
    if series in _SERIES:
        holds = all if series == "pass_hat_k" else any
        return lambda results, task: dict(_blocks(results, task, int(k), holds)), SHARE
    if name == "error_rate":
        return lambda results, task: _each(results, task, lambda one: one.error), SHARE
    return lambda results, task: _each(results, task, lambda one: one.success), SHARE


def _each(results: Results, task: str, value: Callable[[AttemptResult], bool]) -> Values:
    return {trial: float(value(one)) for trial, one in results.of(BASELINE, task).items()}


def _difference(results: Results, task: str) -> Values:
    earlier = results.earlier
    before: Trials = {} if earlier is None else earlier.of(BASELINE, task)
    return {
        trial: float(one.success - before[trial].success)
        for trial, one in results.of(BASELINE, task).items()
        if trial in before
    }


def no_loss_since(name: str) -> GateTarget:
    """Return the target that no success is lost since an earlier experiment."""
    text = f"success rate >= that of {name} − {MARGIN:g}"
    return GateTarget(text, None, None, DIFFERENCE, ">=", -MARGIN)


def _blocks(
    results: Results, task: str, k: int, holds: Callable[[Iterable[bool]], bool]
) -> Iterator[tuple[int, float]]:
    """Yield whether all (any) of each k successive trials passed: independent observations of
    pass^k (pass@k).
    """
    trials = results.of(BASELINE, task)
    for block in {trial // k for trial in trials}:
        members = [trials.get(trial) for trial in range(block * k, block * k + k)]
        done = [one.success for one in members if one is not None]
        if len(done) == k:
            yield block, float(holds(done))


def _kept(results: Results, task: str, condition: str, kept: float) -> Values:
    """Return success under the condition − kept · success of the baseline, trial by trial: its mean
    is at least 0 where the share kept is at least `kept`.
    """
    baseline = results.of(BASELINE, task)
    return {
        trial: one.success - kept * baseline[trial].success
        for trial, one in results.of(condition, task).items()
        if trial in baseline
    }
