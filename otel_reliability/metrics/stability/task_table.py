"""The stability metrics of each task, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.stability.distinct_paths import DistinctPaths
from otel_reliability.metrics.stability.path_entropy import PathEntropy
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.metrics.stability.tool_call_variation import ToolCallVariation
from otel_reliability.metrics.stability.tool_variance import ToolVariance
from otel_reliability.model.row import BASELINE, OTHER_TASK, Row


class TaskRow(NamedTuple):
    """One task: its runs, and its metrics; None where they have no evidence. `task_id` None: the runs without a task."""

    task_id: str | None
    runs: int
    path_entropy: float | None
    path_entropy_bits: float | None
    modal_path_share: float | None
    distinct_paths: int | None
    path_similarity: float | None
    tool_variance: float | None
    tool_call_variation: float | None


def task_table(rows: Iterable[Row], settings: Settings = DEFAULTS) -> list[TaskRow]:
    """A line for each task, in the order of their ids, and one for the runs without; empty if no run has a task.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> for line in task_table([*rows_of("a", "b", task="refund"), *rows_of("a", task="order")]):
    ...     print(line.task_id, line.runs, line.path_entropy, line.distinct_paths, line.path_similarity)
    order 1 None 1 None
    refund 2 1.0 2 0.0
    """
    tasks: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.condition == BASELINE and row.task != OTHER_TASK:
            tasks.setdefault(row.task, []).append(row)
    if not tasks.keys() - {None}:
        return []
    return [_line(task, tasks[task], settings) for task in sorted(tasks, key=lambda task: (task is None, task or ""))]


def _line(task: str | None, rows: list[Row], settings: Settings) -> TaskRow:
    entropy, distinct, similarity = PathEntropy(settings), DistinctPaths(settings), PathSimilarity(settings)
    variance, variation = ToolVariance(settings), ToolCallVariation(settings)
    for row in rows:
        for metric in (entropy, distinct, similarity, variance, variation):
            metric.add(row)
    bits, modal = entropy.companion_values()
    paths = distinct.value().value
    return TaskRow(
        task_id=task,
        runs=len(rows),
        path_entropy=entropy.value().value,
        path_entropy_bits=bits.value,
        modal_path_share=modal.value,
        distinct_paths=None if paths is None else round(paths),
        path_similarity=similarity.value().value,
        tool_variance=variance.value().value,
        tool_call_variation=variation.value().value,
    )
