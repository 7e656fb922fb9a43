"""The reference: the paths of an agent's first units, and how far a new path is from them (C)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from otel_reliability.change.units import Steps
from otel_reliability.statistics.edits import edit_share

SIZE: Final = 40
"""Units that make the reference."""

NEAREST: Final = 5
"""How many of the nearest reference paths count; with fewer observable ones there is no path signal."""

REMEMBERED: Final = 256
"""Maximum steps of a path whose distance is cached: a cached path stays in memory."""

_MOST_KNOWN: Final = 64
"""Distances kept, so that an agent with few paths pays for each once: some more than a reference can have."""


class Reference:
    """The paths of the first 40 units. `distance` is the mean of the five smallest distances to them.

    The distance of two paths is Levenshtein's over the longer length (two empty paths: 0). The nearest five, not all: an
    agent with several tasks has several usual paths, and a new one is unlike it only if it is far from each of them.

    >>> reference = Reference([("search", "book"), ("search", "book"), ("search", "cancel")] * 2)
    >>> reference.distance(("search", "book")), reference.distance(("search", "refund", "mail"))
    (0.1, 0.6666666666666666)
    """

    __slots__ = ("_codes", "_counts", "_distances", "paths")

    def __init__(self, paths: Iterable[Steps | None] = ()) -> None:
        self.paths: list[Steps | None] = []
        self._codes: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._distances: dict[Steps, float] = {}
        for path in paths:
            self.learn(path)

    @property
    def full(self) -> bool:
        """Whether the 40 units are there."""
        return len(self.paths) >= SIZE

    def learn(self, path: Steps | None) -> None:
        """A unit of the reference; None where its tools could not be observed."""
        self.paths.append(None if path is None else self._shared(path))
        self._distances.clear()
        if path is not None:
            self._counts[self._coded(path, self._codes)] += 1

    def _shared(self, path: Steps) -> Steps:
        """The same path, kept once however often it comes."""
        return next((kept for kept in self.paths if kept == path), None) or tuple(map(sys.intern, path))

    def distance(self, path: Steps) -> float | None:
        """The mean of the five smallest distances to the reference, None where it holds fewer than five paths."""
        known = self._distances.get(path)
        if known is not None:
            return known
        if self._counts.total() < NEAREST:
            return None
        if len(path) > REMEMBERED:  # to remember its distance would keep it alive
            return self._measured(path)
        if len(self._distances) >= _MOST_KNOWN:
            self._distances.clear()
        return self._distances.setdefault(path, self._measured(path))

    def _measured(self, path: Steps) -> float:
        code = self._coded(path, self._codes.copy())
        near = sorted((edit_share(code, other), count) for other, count in self._counts.items())
        total, left = 0.0, NEAREST
        for share, count in near:
            total += share * min(count, left)
            left -= min(count, left)
            if not left:
                break
        return total / NEAREST

    @staticmethod
    def _coded(path: Steps, codes: dict[str, str]) -> str:
        """The path with one character a tool; tools not seen yet get the next ones."""
        return "".join([codes.get(tool) or codes.setdefault(tool, chr(len(codes) + 1)) for tool in path])

    def to_state(self) -> list[Sequence[str] | None]:
        """The paths, as plain lists."""
        return [None if path is None else list(path) for path in self.paths]

    @classmethod
    def from_state(cls, state: Iterable[Any]) -> Reference:
        """What `to_state` wrote."""
        return cls(None if path is None else tuple(path) for path in state)
