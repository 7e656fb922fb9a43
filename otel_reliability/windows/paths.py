"""Paths of one agent, each made once and shared by its runs."""

from __future__ import annotations

from collections import Counter
from typing import Final

from otel_reliability.model.row import Path

FIRST_CODE: Final = 0x21
SURROGATES: Final = range(0xD800, 0xE000)
CODES: Final = 1_000_000
"""Distinct step names alive at once that have a character of their own: nearly as many as Unicode has."""
SHARED_CODE: Final = "\U0010ffff"


class PathTable:
    """Distinct paths, counted by the rows that hold them: what no row holds is forgotten, and its characters used again.

    A path's names are its steps as the run has them: tool names in order, hand-offs as `→agent`. A hand-off is a step like
    any other, since some frameworks tell it as a tool call and some do not.

    >>> table = PathTable()
    >>> path = table.intern(("search", "read", "search"))
    >>> path.code, path.counts
    ('!"!', (('read', 1), ('search', 2)))
    >>> table.intern(("search", "read", "search")) is path
    True
    """

    __slots__ = ("_codes", "_free", "_held", "_limit", "_made", "_paths", "_uses")

    def __init__(self, limit: int = CODES) -> None:
        self._limit = limit
        self._paths: dict[tuple[str, ...], Path] = {}
        self._held: dict[tuple[str, ...], int] = {}
        self._codes: dict[str, str] = {}
        self._uses: Counter[str] = Counter()
        self._free: list[str] = []
        self._made = 0

    def __len__(self) -> int:
        return len(self._paths)

    def intern(self, names: tuple[str, ...]) -> Path:
        """The path of these names, held once more. Whoever is done with it says so by `release`."""
        path = self._paths.get(names)
        if path is None:
            path = self._paths[names] = self._make(names)
        self._held[names] = self._held.get(names, 0) + 1
        return path

    def release(self, path: Path) -> None:
        """One holder less."""
        self._held[path.names] -= 1
        if not self._held[path.names]:
            del self._held[path.names], self._paths[path.names]
            for tool in path.tools:
                self._unuse(tool)

    def _make(self, names: tuple[str, ...]) -> Path:
        counts = Counter(names)
        self._uses.update(counts.keys())
        code = "".join([self._code(name) for name in names])
        tools = tuple(sorted(counts))
        return Path(names, code, tools, tuple([counts[tool] for tool in tools]))

    def _unuse(self, tool: str) -> None:
        self._uses[tool] -= 1
        if not self._uses[tool]:
            del self._uses[tool]
            code = self._codes.pop(tool)
            if code != SHARED_CODE:
                self._free.append(code)

    def _code(self, name: str) -> str:
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = self._free.pop() if self._free else self._next_code()
        return code

    def _next_code(self) -> str:
        if self._made >= self._limit:
            return SHARED_CODE
        point = FIRST_CODE + self._made
        self._made += 1
        return chr(point if point < SURROGATES.start else point + len(SURROGATES))
