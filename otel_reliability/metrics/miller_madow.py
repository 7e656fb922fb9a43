"""Entropy that does not grow with the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from math import log, log2

from otel_reliability.config import Settings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.row import BASELINE, OTHER_TASK, Row


def miller_madow(counts: Collection[int]) -> float:
    """Entropy in bits with Miller and Madow's correction: H + (K − 1) / (2 n ln 2), K the number of distinct values among n.

    What was not seen yet makes plain entropy too small, the more so the fewer runs there are.

    >>> miller_madow([2, 2]), miller_madow([50, 50])
    (1.1803, 1.0072)

    References: G. Miller, *Note on the bias of information estimates*, Information Theory in Psychology, 1955.
    """
    n = sum(counts)
    plain = -sum(count / n * log2(count / n) for count in counts)
    return plain + (len(counts) - 1) / (2 * n * log(2))


def path_bits(rows: Iterable[Row], settings: Settings = DEFAULTS) -> float | None:
    """The corrected entropy of the paths: beside `path_entropy`, over the same groups with the same weights.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> path_bits(rows_of("a", "a", "b", "b"))
    1.1803
    """
    return _bits(rows, settings, lambda row: None if row.path is None else row.path.names)


def tool_bits(rows: Iterable[Row], settings: Settings = DEFAULTS) -> float | None:
    """The corrected entropy of the sets of tools: beside `tool_variance`.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> tool_bits(rows_of("a b", "b a"))
    0.0
    """
    return _bits(rows, settings, lambda row: None if row.path is None else row.path.tools)


def _bits(rows: Iterable[Row], settings: Settings, value: Callable[[Row], Hashable | None]) -> float | None:
    groups: dict[str | None, Counter[Hashable]] = {}
    for row in rows:
        found = value(row)
        by_task = settings.metrics.group_by == "task"
        if found is not None and row.condition == BASELINE and not (by_task and row.task == OTHER_TASK):
            groups.setdefault(row.task if by_task else None, Counter())[found] += 1
    counted = [counts for counts in groups.values() if counts.total() >= 2]
    weight = sum(counts.total() for counts in counted)
    total = sum(counts.total() * miller_madow(counts.values()) for counts in counted)
    return total / weight if weight else None
