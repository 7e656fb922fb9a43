"""The tasks of an agent, those first whose attempts disagree most about what they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_reliability.metrics.stability.effect_table import Parting, TaskEffects
from otel_reliability.metrics.stability.task_table import TaskRow
from otel_reliability.report.scorecard import Scorecard, by_task
from otel_reliability.report.text import clean, number, percent

MOST_TASKS: Final = 20


class Split(NamedTuple):
    """A tool whose calls some attempts made and others did not, and how many attempts made which."""

    tool: str
    told: str


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
    effects = {one.task: one for one in card.findings.effects}
    outcomes = {task: [row.success for row in rows] for task, rows in by_task(card.rows).items()}
    ordered = sorted(
        (task for task in card.tasks if task.task_id is not None),
        key=lambda task: _order(task, effects.get(task.task_id or "")),
    )
    return [
        _line(task, effects.get(task.task_id or ""), outcomes.get(task.task_id, [])) for task in ordered[:MOST_TASKS]
    ]


def _order(task: TaskRow, effects: TaskEffects | None) -> tuple[float, float, int, str]:
    apart = 0.0 if effects is None else effects.disagreement
    return (-apart, -(task.path_entropy or 0.0), -task.runs, task.task_id or "")


def _line(task: TaskRow, effects: TaskEffects | None, outcomes: Sequence[bool | None]) -> TaskLine:
    known = [outcome for outcome in outcomes if outcome is not None]
    return TaskLine(
        task=clean(task.task_id or "", 60),
        runs=task.runs,
        apart="" if effects is None else percent(effects.disagreement),
        share=0.0 if effects is None else round(100 * effects.disagreement, 1),
        splits=() if effects is None else _splits(effects),
        passed=f"{sum(known)} of {len(known)}" if known else "",
        paths="" if task.distinct_paths is None else f"{task.distinct_paths:,}",
        entropy="" if task.path_entropy is None else number(task.path_entropy),
    )


def _splits(effects: TaskEffects) -> tuple[Split, ...]:
    """One a tool: calls of it are told apart by arguments, which are not shown."""
    tools: dict[str, list[Parting]] = {}
    for parting in effects.partings:
        tools.setdefault(parting.tool, []).append(parting)
    return tuple(Split(clean(tool, 40), _split(calls, effects.runs)) for tool, calls in list(tools.items())[:4])


def _split(calls: Sequence[Parting], runs: int) -> str:
    """By how many of the attempts.

    >>> (
    ...     _split([Parting("pay", 2)], 6),
    ...     _split([Parting("pay", 1)] * 5, 6),
    ...     _split([Parting("pay", n) for n in (3, 2, 1, 1)], 6),
    ... )
    ('by 2 of 6', '5 different calls, each by 1 of 6', '4 different calls, by 3, 2, 1, … of 6')
    """
    counts = [call.attempts for call in calls]
    if len(counts) == 1:
        return f"by {counts[0]} of {runs}"
    if len(set(counts)) == 1:
        return f"{len(counts)} different calls, each by {counts[0]} of {runs}"
    told = ", ".join(map(str, counts[:3])) + (", …" if len(counts) > 3 else "")
    return f"{len(counts)} different calls, by {told} of {runs}"
