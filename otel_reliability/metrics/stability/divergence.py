"""First divergence of the paths of runs, with shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from otel_reliability.model.row import BASELINE, Row


class Turn(NamedTuple):
    """One way to go on: the next step (None: the run ends here), the runs that took it, and their share."""

    step: str | None
    runs: int
    share: float


class Divergence(NamedTuple):
    """The steps that all runs of a task (None: all runs) share, and the turns they take after them, the most frequent first."""

    task_id: str | None
    shared: tuple[str, ...]
    turns: tuple[Turn, ...]

    @property
    def deviating(self) -> int:
        """Number of runs that did not take the most frequent turn."""
        return sum(turn.runs for turn in self.turns[1:])


def first_divergence(paths: Sequence[tuple[str, ...]], task: str | None = None) -> Divergence | None:
    """The longest common beginning of all paths, and how they go on; None if all are equal.

    >>> found = first_divergence([("search", "reply"), ("search", "reply"), ("search",)])
    >>> found.shared, [(turn.step, turn.runs) for turn in found.turns]
    (('search',), [('reply', 2), (None, 1)])
    """
    if len(set(paths)) <= 1:
        return None
    shared = _common(min(paths), max(paths))
    steps = Counter(path[len(shared)] if len(path) > len(shared) else None for path in paths)
    turns = sorted(steps.items(), key=lambda turn: (-turn[1], turn[0] is None, turn[0] or ""))
    return Divergence(task, shared, tuple(Turn(step, runs, runs / len(paths)) for step, runs in turns))


def divergences(rows: Iterable[Row], *, by_task: bool = True) -> list[Divergence]:
    """The first divergence of each task (of all runs together, where they have none), most deviating runs first.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> rows = [*rows_of("a", "b", task="x"), *rows_of("a", "a", task="y"), *rows_of("a b", "a c", "a d", task="z")]
    >>> [(found.task_id, found.shared, found.deviating) for found in divergences(rows)]
    [('z', ('a',), 2), ('x', (), 1)]
    """
    tasks: dict[str | None, list[tuple[str, ...]]] = {}
    for row in rows:
        if row.path is not None and row.condition == BASELINE:
            tasks.setdefault(row.task if by_task else None, []).append(row.path.names)
    found = [first_divergence(paths, task) for task, paths in tasks.items()]
    return sorted((one for one in found if one is not None), key=lambda one: (-one.deviating, one.task_id or ""))


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    """The common beginning of the least and the greatest of sorted paths: it is that of all between them."""
    return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
