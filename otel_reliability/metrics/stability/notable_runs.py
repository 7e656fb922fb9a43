"""The runs that explain a number: those that exploded, that came nearest their limit, that are unlike the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row


class Explosion(NamedTuple):
    """A run that retried one call too often: which tool, how often, and what the retries cost."""

    run_id: str
    tool: str | None
    retries: int
    tokens: int
    seconds: float


class Notable(NamedTuple):
    """A run, and the number that makes it worth a look."""

    run_id: str
    value: float


def explosions(rows: Iterable[Row], threshold: int = 3) -> list[Explosion]:
    """The runs with a chain of at least `threshold` retries, the longest chain first.

    >>> from otel_reliability.metrics.examples import row
    >>> [(found.tool, found.retries) for found in explosions([row(retries=2), row(retries=3), row(retries=7)])]
    [('tool', 7), ('tool', 3)]
    """
    found = [
        Explosion(row.run_id, retries.tool, retries.longest_chain, retries.tokens, retries.duration_ns / 1e9)
        for row in rows
        if (retries := row.retries) is not None and row.baseline and retries.longest_chain >= threshold
    ]
    return sorted(found, key=lambda explosion: (-explosion.retries, explosion.run_id))


def fullest(rows: Iterable[Row], most: int = 3) -> list[Notable]:
    """The runs nearest their context limit, and how full it was.

    >>> from otel_reliability.metrics.examples import row
    >>> [found.value for found in fullest([row(pressure=0.2), row(), row(pressure=0.9)])]
    [0.9, 0.2]
    """
    return _most((Notable(row.run_id, row.pressure) for row in rows if row.baseline and row.pressure is not None), most)


def oddest(rows: Iterable[Row], distance: Callable[[Row], Reading], most: int = 3) -> list[Notable]:
    """The runs most unlike the others of their group, and their path distance (`AgentWindow.path_distance`).

    Runs that took the same path in the same group are equally far: each path is measured once.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> from otel_reliability.metrics.stability.path_similarity import PathSimilarity
    >>> similarity, rows = PathSimilarity(), rows_of("a b", "a b", "c")
    >>> for row in rows:
    ...     similarity.add(row)
    >>> [found.value for found in oddest(rows, similarity.distance)]
    [1.0, 0.5, 0.5]
    """
    known: dict[tuple[str | None, str], float | None] = {}
    found: list[Notable] = []
    for row in rows:
        if row.path is None or not row.baseline:
            continue
        place = (row.task, row.path.code)
        if place not in known:
            known[place] = distance(row).value
        value = known[place]
        if value is not None:
            found.append(Notable(row.run_id, value))
    return _most(found, most)


def _most(found: Iterable[Notable], most: int) -> list[Notable]:
    return sorted(found, key=lambda notable: (-notable.value, notable.run_id))[:most]
