"""Paths of one agent, each made once and shared by its runs."""

from __future__ import annotations

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

    __slots__ = ("_codes", "_free", "_limit", "_made", "_paths", "_uses")

    def __init__(self, limit: int = CODES) -> None:
        self._limit = limit
        self._paths: dict[str | tuple[str, ...], Path] = {}
        self._codes: dict[str, str] = {}
        self._uses: dict[str, int] = {}
        self._free: list[str] = []
        self._made = 0

    def __len__(self) -> int:
        return len(self._paths)

    def intern(self, names: tuple[str, ...]) -> Path:
        """The path of these names, held once more. Whoever is done with it says so by `release`."""
        codes = self._codes
        try:
            code = "".join([codes[name] for name in names])
        except KeyError:
            code = "".join([self._code(name) for name in names])
        key = code if SHARED_CODE not in code else names
        path = self._paths.get(key)
        if path is None:
            path = self._paths[key] = self._make(names, code)
        path.held += 1
        return path

    def release(self, path: Path) -> None:
        """One holder less."""
        path.held -= 1
        if not path.held:
            del self._paths[path.code if SHARED_CODE not in path.code else path.names]
            for tool in path.tools:
                self._unuse(tool)

    def _make(self, names: tuple[str, ...], code: str) -> Path:
        path, uses = Path(names, code), self._uses
        for tool in path.tools:
            uses[tool] = uses.get(tool, 0) + 1
        return path

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
