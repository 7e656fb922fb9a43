"""The tasks of an agent, those first whose attempts disagree most about what they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_reliability.metrics.stability.effect_table import TaskEffects
from otel_reliability.metrics.stability.task_table import TaskRow
from otel_reliability.report.scorecard import Scorecard, by_task
from otel_reliability.report.task_effects import Split, ordered_tasks, splits
from otel_reliability.report.text import clean, number, percent

MOST_TASKS: Final = 20


class TaskLine(NamedTuple):
    """One task. `apart` is how far its attempts disagree about what they changed, empty where nobody can tell."""

    task: str
    runs: int
    apart: str
    share: float
    splits: tuple[Split, ...]
    passed: str
    paths: str
    entropy: str


def task_lines(card: Scorecard) -> list[TaskLine]:
    """The tasks that were attempted, the one to look at first in front; at most `MOST_TASKS`."""
    outcomes = {task: [row.success for row in rows] for task, rows in by_task(card.rows).items()}
    ordered = [(task, effects) for task, effects in ordered_tasks(card) if task.task_id is not None]
    return [_line(task, effects, outcomes.get(task.task_id, [])) for task, effects in ordered[:MOST_TASKS]]


def _line(task: TaskRow, effects: TaskEffects | None, outcomes: Sequence[bool | None]) -> TaskLine:
    known = [outcome for outcome in outcomes if outcome is not None]
    return TaskLine(
        task=clean(task.task_id or "", 60),
        runs=task.runs,
        apart="" if effects is None else percent(effects.disagreement),
        share=0.0 if effects is None else round(100 * effects.disagreement, 1),
        splits=() if effects is None else splits(effects),
        passed=f"{sum(known)} of {len(known)}" if known else "",
        paths="" if task.distinct_paths is None else f"{task.distinct_paths:,}",
        entropy="" if task.path_entropy is None else number(task.path_entropy),
    )
