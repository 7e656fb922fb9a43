"""The user's rules on tool names: ignored tools are no step, renamed ones are one tool."""

from __future__ import annotations

import fnmatch
from typing import Final

from otel_reliability.config import ToolSettings
from otel_reliability.model.span import Call

LONGEST_NAME: Final = 256
_MAX_NAMES: Final = 65_536


class ToolNames:
    """Applies `tools.ignore` and `tools.rename`; each name is worked out once.

    >>> names = ToolNames(ToolSettings(ignore=("log_*",), rename={"fetch_page_*": "fetch_page"}))
    >>> [names.of(name) for name in ("fetch_page_7", "log_step", "search")]
    ['fetch_page', None, 'search']
    """

    def __init__(self, settings: ToolSettings) -> None:
        self._ignore, self._rename = settings.ignore, dict(settings.rename)
        self.has_rules = bool(self._ignore or self._rename)
        self._known: dict[str, str | None] = {}

    def of(self, name: str) -> str | None:
        """Return what a tool is called here; None where it is no step."""
        try:
            return self._known[name]
        except KeyError:
            return self._worked_out(name)

    def renamed(self, calls: tuple[Call, ...]) -> tuple[Call, ...]:
        """The calls under these rules, without those that are ignored."""
        found = [self._call(call) for call in calls]
        return tuple([call for call in found if call is not None])

    def _call(self, call: Call) -> Call | None:
        if call.name is None:
            return call
        name = self.of(call.name)
        if name == call.name:
            return call
        return None if name is None else call._replace(name=name)

    def _worked_out(self, name: str) -> str | None:
        found: str | None = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in self._ignore):
            found = None
        else:
            found = next((new for old, new in self._rename.items() if fnmatch.fnmatchcase(name, old)), found)
        if len(self._known) < _MAX_NAMES:
            self._known[name] = found
        return found
