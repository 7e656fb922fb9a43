"""What is known of one agent: its windows, its last whole runs, its paths and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from otel_reliability.config import Settings
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.model.tools import ToolRules
from otel_reliability.windows.paths import PathTable
from otel_reliability.windows.recent import RecentRuns
from otel_reliability.windows.rows import row_of
from otel_reliability.windows.window import AgentWindow


class AgentState:
    """One agent's runs, each kept once, as a row that all its windows share.

    `recent` are its last whole runs, the newest last. What hits a ceiling is counted in `accounts`.
    """

    __slots__ = (
        "_accounts",
        "_entering",
        "_most_tasks",
        "_paths",
        "_reopenable",
        "_rows",
        "_rules",
        "_tasks",
        "key",
        "recent",
        "windows",
    )

    def __init__(self, key: AgentKey, settings: Settings, accounts: Counter[tuple[str, str]]) -> None:
        self.key = key
        self.recent = RecentRuns(settings.limits.recent_runs)
        self._accounts = accounts
        self._most_tasks = settings.limits.tasks
        self._rules = ToolRules(settings.tools.helpers, settings.tools.effects, settings.tools.reads)
        self._paths = PathTable()
        self._tasks: Counter[str] = Counter()
        self._rows: dict[str, Row] = {}
        self._reopenable: set[str] = set()
        self._entering: Row | None = None
        self.windows: Mapping[str, AgentWindow] = {
            window.name: AgentWindow(window, settings, self._reopenable, self._dropped) for window in settings.windows
        }

    @property
    def empty(self) -> bool:
        """Whether no run is left."""
        return not self._rows

    @property
    def last_run_ns(self) -> int | None:
        """When its last run ended; None while it has none."""
        return max((end for window in self.windows.values() if (end := window.newest_ns) is not None), default=None)

    def row(self, run_id: str) -> Row | None:
        """The row of a run that a window still keeps."""
        return self._rows.get(run_id)

    def close(self, run: Run) -> None:
        """A run was closed, or closed anew."""
        self.withdraw(run)
        row = self._row_of(run)
        self._rows[row.run_id] = row
        self._reopenable.add(row.run_id)
        self.recent.add(run)
        self._entering = row
        for window in self.windows.values():
            if not window.insert(row):
                self._accounts["refused", window.name] += 1
        self._entering = None
        self._dropped(row)

    def withdraw(self, run: Run) -> None:
        """A run is gone; nothing happens if it was not there."""
        self.recent.remove(run.run_id)
        row = self._rows.get(run.run_id)
        if row is not None:
            for window in self.windows.values():
                window.remove(row)

    def settle(self, run: Run) -> None:
        """A run will not change any more; nothing happens if it is not there."""
        row = self._rows.get(run.run_id)
        if row is not None and row.run_id in self._reopenable:
            self._reopenable.discard(row.run_id)
            for window in self.windows.values():
                window.settle(row)

    def _row_of(self, run: Run) -> Row:
        row = row_of(run, self._paths, self._rules)
        if row.task is None:
            return row
        if row.task not in self._tasks and len(self._tasks) >= self._most_tasks:
            self._accounts["tasks", "ceiling"] += 1
            return row._replace(task=OTHER_TASK)
        self._tasks[row.task] += 1
        return row

    def _dropped(self, row: Row) -> None:
        """A window let go of a row: forget it, unless it is still coming in or another window keeps it."""
        if row is self._entering or self._is_kept(row):
            return
        del self._rows[row.run_id]
        self._reopenable.discard(row.run_id)
        if row.path is not None:
            self._paths.release(row.path)
        if row.task is not None and row.task in self._tasks:
            self._tasks[row.task] -= 1
            if not self._tasks[row.task]:
                del self._tasks[row.task]

    def _is_kept(self, row: Row) -> bool:
        return any(row in window for window in self.windows.values())
