"""The tasks of an agent, those first whose attempts end in the most different changes, and in which changes they part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics._support.groups import repeats_a_task
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.metrics.stability.effect_agreement import EffectAgreement
from otel_reliability.model.row import Row


class Parting(NamedTuple):
    """An effect that some attempts had and others had not: the tool, and how many had it. Never its arguments: two lines
    of one tool are calls of it with different arguments.
    """

    tool: str
    attempts: int


class TaskEffects(NamedTuple):
    """One task: how many of its runs are compared, how far apart their effects are (0: all the same), and where they part,
    the most evenly split first; with the runs whose outcome is known, and how many of them failed.
    """

    task: str
    runs: int
    disagreement: float
    partings: tuple[Parting, ...]
    judged: int
    failed: int


def tasks_by_disagreement(rows: Iterable[Row], settings: Settings = DEFAULTS) -> list[TaskEffects]:
    """Return a line for each task of at least 2 runs, the least agreement first; of equals, by name.

    >>> from otel_reliability.metrics.examples import row
    >>> def attempt(task, *effects):
    ...     return row("", task=task, effects=frozenset((tool, b"1") for tool in effects))
    >>> rows = [
    ...     attempt("order", "pay"),
    ...     attempt("order", "pay"),
    ...     attempt("refund", "pay"),
    ...     attempt("refund", "pay", "cancel"),
    ... ]
    >>> for line in tasks_by_disagreement(rows):
    ...     print(line.task, line.disagreement, line.partings)
    refund 0.5 (Parting(tool='cancel', attempts=1),)
    order 0.0 ()
    """
    tasks: dict[str, list[Row]] = {}
    for row in rows:
        if row.task is not None and row.effects is not None and repeats_a_task(row):
            tasks.setdefault(row.task, []).append(row)
    lines = [_line(task, attempts, settings) for task, attempts in tasks.items() if len(attempts) >= 2]
    return sorted(lines, key=lambda line: (-line.disagreement, line.task))


def _line(task: str, attempts: Sequence[Row], settings: Settings) -> TaskEffects:
    agreement = EffectAgreement(settings)
    for row in attempts:
        agreement.add(row)
    reading = agreement.value()
    known = [row.success for row in attempts if row.success is not None]
    disagreement = 0.0 if reading.value is None else 1.0 - reading.value
    return TaskEffects(task, reading.runs, disagreement, _partings(attempts), len(known), known.count(False))


def _partings(attempts: Sequence[Row]) -> tuple[Parting, ...]:
    counts = Counter(effect for row in attempts for effect in row.effects or ())
    split = [Parting(tool, count) for (tool, _), count in counts.items() if count < len(attempts)]
    return tuple(sorted(split, key=lambda one: (abs(2 * one.attempts - len(attempts)), one.tool, -one.attempts)))
