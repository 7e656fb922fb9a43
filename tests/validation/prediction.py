"""Metrics that predict failure: the first part of docs/explanation/validation.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.metrics.stability.effect_agreement import EffectAgreement
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.metrics.uncertainty import SampleNumbers
from otel_reliability.model.row import Row

Floats: TypeAlias = NDArray[np.float64]

RESAMPLES: Final = 1_000
MIN_TASKS: Final = 5
AS_REPORTED: Final = Settings(metrics=MetricSettings(min_runs=2))
"""Reports score from two runs on."""
PER_TASK: Final = {
    "effect_agreement": -1,
    "path_similarity": -1,
    "path_entropy": 1,
    "tool_variance": 1,
    "tool_call_variation": 1,
    "branch_instability": 1,
    "retry_explosion_share": 1,
    "loops": 1,
    "score": -1,
}
"""Metrics of a task's runs, and the sign with which more of them should mean more failures."""


class Estimate(NamedTuple):
    """A number with its 95 % interval over tasks."""

    value: float
    low: float
    high: float

    def differs_from(self, nothing: float) -> bool:
        """Return whether the interval leaves out the value of a metric that predicts nothing."""
        return self.low > nothing or self.high < nothing

    def __str__(self) -> str:
        return (
            "–" if np.isnan(self.value) else f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"
        )


Task: TypeAlias = list[tuple[float, bool]]
"""The runs of a task: a number of each, and whether it failed."""


def run_numbers(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """Return the numbers of each run that do not use its outcome."""
    effects = EffectAgreement()
    paths = PathSimilarity()
    for row in rows:
        effects.add(row)
        paths.add(row)
    return {
        "effect distance": [effects.distance(row).value for row in rows],
        "path distance": [paths.distance(row).value for row in rows],
        "tool calls": [_float(row.tool_calls) for row in rows],
        "failed calls": [_float(row.failed_calls) for row in rows],
        "retries": [None if row.retries is None else float(row.retries.number) for row in rows],
        "no effect": [None if row.effects is None else float(not row.effects) for row in rows],
        "repeats": [None if row.retries is None else float(row.retries.repeats) for row in rows],
    }


def _float(number: int | None) -> float | None:
    return None if number is None else float(number)


def tasks_of(rows: Sequence[Row], numbers: Sequence[float | None]) -> list[Task]:
    tasks: dict[str, Task] = defaultdict(list)
    for row, number in zip(rows, numbers, strict=True):
        if row.task is not None and row.success is not None and number is not None:
            tasks[row.task].append((number, not row.success))
    return list(tasks.values())


def auroc(tasks: Sequence[Task]) -> float:
    return _exceeds([run for task in tasks for run in task])


def within(tasks: Sequence[Task]) -> float:
    """The same among the runs of one task only, over all such pairs."""
    pairs = [(sum(failed for _, failed in task), task) for task in tasks]
    weighed = [
        (bad * (len(task) - bad), _exceeds(task)) for bad, task in pairs if 0 < bad < len(task)
    ]
    total = sum(weight for weight, _ in weighed)
    return sum(weight * value for weight, value in weighed) / total if total else float("nan")


def spearman(tasks: Sequence[Task]) -> float:
    means = [_mean(task) for task in tasks]
    return correlation(
        np.array([mean for mean, _ in means]), np.array([share for _, share in means])
    )


def _mean(task: Task) -> tuple[float, float]:
    """A task's mean number and its share of failed runs; equal means are ties, to
    the last digit.
    """
    return round(sum(n for n, _ in task) / len(task), 9), round(
        sum(failed for _, failed in task) / len(task), 9
    )


def correlation(one: Floats, other: Floats) -> float:
    """Spearman's rank correlation; of a constant there is none."""
    if one.min() == one.max() or other.min() == other.max():
        return float("nan")
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    below = np.sort(values).searchsorted(values, "left")
    up_to = np.sort(values).searchsorted(values, "right")
    return (below + up_to + 1) / 2


def _exceeds(runs: Sequence[tuple[float, bool]]) -> float:
    """The area under the curve: Mann and Whitney's count of pairs, from ranks."""
    ranks: list[float] = _ranks(np.array([number for number, _ in runs])).tolist()
    failed = sum(bad for _, bad in runs)
    pairs = failed * (len(runs) - failed)
    total = sum(rank for rank, (_, bad) in zip(ranks, runs, strict=True) if bad)
    return (total - failed * (failed + 1) / 2) / pairs if pairs else float("nan")


def estimate(tasks: Sequence[Task], statistic: Callable[[Sequence[Task]], float]) -> Estimate:
    """A number over tasks, with the interval that resampling the tasks gives; of fewer than five
    tasks there is none.
    """
    unknown = float("nan")
    if len(tasks) < MIN_TASKS:
        return Estimate(unknown, unknown, unknown)
    drawn: list[list[int]] = (
        np.random.default_rng(0).integers(len(tasks), size=(RESAMPLES, len(tasks))).tolist()
    )
    values = sorted(v for draw in drawn if not np.isnan(v := statistic([tasks[at] for at in draw])))
    if not values:
        return Estimate(unknown, unknown, unknown)
    return Estimate(statistic(tasks), values[len(values) // 40], values[-1 - len(values) // 40])


def task_metrics(rows: Sequence[Row]) -> dict[str, list[Task]]:
    """Per metric, of each task: (its value over the task's runs with the expected sign, share of
    failed runs).
    """
    tasks: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.task is not None and row.success is not None:
            tasks[row.task].append(row)
    found: dict[str, list[Task]] = {name: [] for name in PER_TASK}
    for attempts in tasks.values():
        numbers = SampleNumbers(AS_REPORTED)
        numbers.add(attempts)
        readings = numbers.readings()
        for name, sign in PER_TASK.items():
            value = readings[name].value
            if value is not None:
                found[name].append([(sign * value, row.success is False) for row in attempts])
    return found


def page(sets: Mapping[str, Sequence[Row]]) -> str:
    return "\n".join(line for name, rows in sets.items() for line in _of_set(name, rows))


def _of_set(name: str, rows: Sequence[Row]) -> Iterable[str]:
    failed = sum(row.success is False for row in rows)
    yield f"### {name}\n"
    yield f"{len(rows)} runs of {len({row.task for row in rows})} tasks, {failed} failed.\n"
    yield (
        "| of a run | AUROC of its failure | within its task | task mean ~ failure rate "
        "(Spearman) | predicts |"
    )
    yield "|---|---|---|---|---|"
    for number, values in run_numbers(rows).items():
        tasks = tasks_of(rows, values)
        found = estimate(tasks, auroc), estimate(tasks, within), estimate(tasks, spearman)
        predicted = [
            what
            for what, one, zero in zip(
                ("runs", "attempts", "tasks"), found, (0.5, 0.5, 0.0), strict=True
            )
            if one.differs_from(zero)
        ]
        yield (
            f"| {number} | {found[0]} | {found[1]} | {found[2]} | "
            f"{', '.join(predicted) or 'nothing'} |"
        )
    yield "\n| of a task's runs | ~ failure rate (Spearman) | predicts |"
    yield "|---|---|---|"
    for metric, tasks in task_metrics(rows).items():
        one = estimate(tasks, spearman)
        sign = "" if PER_TASK[metric] > 0 else "less "
        yield f"| {sign}{metric} | {one} | {'tasks' if one.differs_from(0.0) else 'nothing'} |"
    yield ""


def points(rows: Sequence[Row]) -> list[tuple[float, float]]:
    """For the picture: of each task, its mean effect distance and its share of failed runs."""
    tasks = tasks_of(rows, run_numbers(rows)["effect distance"])
    return [_mean(task) for task in tasks]
