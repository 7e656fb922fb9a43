"""The reference: the paths of an agent's first observations, and how far a new path
is from them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Final

from otel_reliability.model.observation import Steps
from otel_reliability.model.remembered import Remembered
from otel_reliability.statistics.edits import coded, edit_shares

SIZE: Final = 40
"""Number of observations of the reference."""

NEAREST: Final = 5
"""Number of the nearest reference paths that count; with fewer observable ones there is no path
signal.
"""

MAX_CACHED_STEPS: Final = 256
"""Maximum steps of a path whose distance is cached: the cache keeps the path in memory."""
MAX_CACHED: Final = 64
"""Maximum number of cached distances: some more than a reference can have paths."""


class Reference:
    """The paths of the first 40 observations. `distance` is the mean of the five smallest distances
    to them.

    The distance of two paths is Levenshtein's over the longer length (two empty paths: 0). The
    nearest five, not all: an agent with several tasks has several common paths, and a new one is
    unlike it only if it is far from each of them.

    >>> reference = Reference([("search", "book"), ("search", "book"), ("search", "cancel")] * 2)
    >>> reference.distance(("search", "book")), reference.distance(("search", "refund", "mail"))
    (0.1, 0.6666666666666666)
    """

    __slots__ = ("_codes", "_counts", "_distances", "paths")

    def __init__(self, paths: Iterable[Steps | None] = ()) -> None:
        self.paths: list[Steps | None] = []
        self._codes: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._distances = Remembered[Steps, float](MAX_CACHED)
        for path in paths:
            self.add(path)

    @property
    def full(self) -> bool:
        """True if the 40 observations are there."""
        return len(self.paths) >= SIZE

    def add(self, path: Steps | None) -> None:
        """Add the path of an observation; None where its tools could not be observed."""
        self.paths.append(None if path is None else self._shared(path))
        self._distances.clear()
        if path is not None:
            self._counts[coded(path, self._codes)] += 1

    def _shared(self, path: Steps) -> Steps:
        """Return the equal path that is kept already, else the path."""
        return next((kept for kept in self.paths if kept == path), None) or tuple(
            map(sys.intern, path)
        )

    def distance(self, path: Steps) -> float | None:
        """Return the mean of the five smallest distances to the reference, None where it has fewer
        than five paths.
        """
        known = self._distances.get(path)
        if known is None and self._counts.total() >= NEAREST:
            known = self._measured(path)
            if len(path) <= MAX_CACHED_STEPS:
                self._distances[path] = known
        return known

    def _measured(self, path: Steps) -> float:
        code = coded(path, self._codes.copy())
        total = 0.0
        left = NEAREST
        for share, count in sorted(
            zip(edit_shares(code, self._counts), self._counts.values(), strict=True)
        ):
            total += share * min(count, left)
            left -= min(count, left)
            if not left:
                break
        return total / NEAREST
