"""The tasks of an agent in the order to look at them, and in which changes to the world their attempts part, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from otel_reliability.metrics.stability.effect_table import Parting, TaskEffects
from otel_reliability.metrics.stability.task_table import TaskRow
from otel_reliability.report.scorecard import Scorecard
from otel_reliability.report.text import clean

MOST_TOOLS = 4


class Split(NamedTuple):
    """A tool whose calls some attempts made and others did not, and how many attempts made which."""

    tool: str
    told: str


def ordered_tasks(card: Scorecard) -> list[tuple[TaskRow, TaskEffects | None]]:
    """Each task with what is known of its effects: those first whose attempts disagree most about them, then by their paths."""
    effects = {one.task: one for one in card.findings.effects}
    tasks = ((task, None if task.task_id is None else effects.get(task.task_id)) for task in card.tasks)
    return sorted(tasks, key=lambda pair: _order(*pair))


def _order(task: TaskRow, effects: TaskEffects | None) -> tuple[float, float, int, str]:
    apart = 0.0 if effects is None else effects.disagreement
    return (-apart, -(task.path_entropy or 0.0), -task.runs, task.task_id or "")


def splits(effects: TaskEffects, most: int = MOST_TOOLS) -> tuple[Split, ...]:
    """One a tool, the most evenly split first: calls of it are told apart by arguments, which are not shown."""
    tools: dict[str, list[Parting]] = {}
    for parting in effects.partings:
        tools.setdefault(parting.tool, []).append(parting)
    parting = sorted(tools.items(), key=lambda item: _unevenness(item[1], effects.runs))
    return tuple(Split(clean(tool, 40), _split(calls, effects.runs)) for tool, calls in parting[:most])


def _unevenness(calls: Sequence[Parting], runs: int) -> int:
    """How far a tool is from being called by half of the attempts: one that all call, differently, says less."""
    return abs(2 * min(runs, sum(call.attempts for call in calls)) - runs)


def parted(effects: TaskEffects, most: int = MOST_TOOLS) -> str:
    """The same in a line.

    >>> parted(TaskEffects("refund", 6, 0.5, (Parting("pay", 2), Parting("mail", 1), Parting("mail", 1)), 0, 0))
    'pay by 2 of 6, mail: 2 different calls, each by 1 of 6'
    """
    told = (f"{tool} {how}" if how.startswith("by ") else f"{tool}: {how}" for tool, how in splits(effects, most))
    more = len({parting.tool for parting in effects.partings}) - most
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


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
