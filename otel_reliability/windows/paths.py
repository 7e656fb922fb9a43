"""Paths of one agent, each made once and shared by its runs."""

from __future__ import annotations

from typing import Final

from otel_reliability.model.row import SHARED_CODE, Path

FIRST_CODE: Final = 0x21
SURROGATES: Final = range(0xD800, 0xE000)
CODES: Final = 1_000_000
"""Distinct step names alive at once that have a character of their own: nearly as many as Unicode has."""


class PathTable:
    """Distinct paths, counted by the rows that hold them: what no row holds is forgotten, and its characters used again.

    A path's names are its steps as the run has them: tool names in order, hand-offs as `→agent`. A hand-off is a step like
    any other, since some frameworks report it as a tool call and some do not.

    Names are not counted: when a new one comes, and as many paths have been forgotten as there are, those of no path are
    looked for. Paths that are still in use then keep what their characters stood for.

    >>> table = PathTable()
    >>> path = table.intern(("search", "read", "search"))
    >>> path.code, path.counts
    ('!"!', (('read', 1), ('search', 2)))
    >>> table.intern(("search", "read", "search")) is path
    True
    """

    __slots__ = ("_forgotten", "_free", "_limit", "_made", "_names", "codes", "paths")

    def __init__(self, limit: int = CODES) -> None:
        self._limit = limit
        self.paths: dict[str | tuple[str, ...], Path] = {}
        """By their codes; those in which tools share a character by their names."""
        self.codes: dict[str, str] = {}
        """The character of each name."""
        self._names: dict[str, str] = {}
        self._free: list[str] = []
        self._made = 0
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self.paths)

    def intern(self, names: tuple[str, ...]) -> Path:
        """Return the path of these names, held once more; `release` gives it back."""
        codes = self.codes
        try:
            code = "".join([codes[name] for name in names])
        except KeyError:
            code = self._spell(names)
        shared = SHARED_CODE in code
        path = self.paths.get(names if shared else code)
        if path is None:
            path = self.begin(code, names)
        path.held += 1
        return path

    def begin(self, code: str, names: tuple[str, ...]) -> Path:
        """Add a path that has no holder yet."""
        shared = SHARED_CODE in code
        path = self.paths[names if shared else code] = Path(code, names if shared else self._names)
        return path

    def release(self, path: Path) -> None:
        """One holder less."""
        path.held -= 1
        if not path.held:
            del self.paths[path.code if SHARED_CODE not in path.code else path.names]
            self._forgotten += 1

    def _spell(self, names: tuple[str, ...]) -> str:
        """The code of names of which one is new."""
        if self._forgotten > len(self.paths):
            self._forget_names()
        return "".join([self._code(name) for name in names])

    def _forget_names(self) -> None:
        """Free the characters of names that no path has."""
        used = {name for path in self.paths.values() for name in path.names}
        self._free += [code for name, code in self.codes.items() if name not in used and code != SHARED_CODE]
        self.codes = {name: code for name, code in self.codes.items() if name in used}
        self._names = {code: name for name, code in self.codes.items() if code != SHARED_CODE}
        for path in self.paths.values():
            path.spell_by(self._names)
        self._forgotten = 0

    def _code(self, name: str) -> str:
        code = self.codes.get(name)
        if code is None:
            code = self.codes[name] = self._free.pop() if self._free else self._next_code()
            if code != SHARED_CODE:
                self._names[code] = name
        return code

    def _next_code(self) -> str:
        if self._made >= self._limit:
            return SHARED_CODE
        point = FIRST_CODE + self._made
        self._made += 1
        return chr(point if point < SURROGATES.start else point + len(SURROGATES))
