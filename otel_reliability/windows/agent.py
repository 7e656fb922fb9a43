"""The windows, the last whole runs, the paths and the tasks of one agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from otel_reliability.config import Settings
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.model.tools import ToolRules
from otel_reliability.windows.kept import write_agent
from otel_reliability.windows.paths import PathTable
from otel_reliability.windows.recent import RecentRuns
from otel_reliability.windows.rows import row_of
from otel_reliability.windows.told import Told
from otel_reliability.windows.window import AgentWindow


class AgentState:
    """One agent's runs, each kept once, as a row that all its windows share.

    `recent` are its last whole runs, the newest last. `seen` is the engine's time when a run of it was last closed. Runs that
    hit a limit are counted in `accounts`.
    """

    __slots__ = (
        "_accounts",
        "_dropped",
        "_max_tasks",
        "_paths",
        "_reopenable",
        "_rows",
        "_rules",
        "_tasks",
        "key",
        "recent",
        "seen",
        "windows",
    )

    def __init__(self, key: AgentKey, settings: Settings, accounts: Counter[tuple[str, str]]) -> None:
        self.key = key
        self.recent = RecentRuns(settings.limits.recent_runs)
        self.seen: float | None = None
        self._accounts = accounts
        self._max_tasks = settings.limits.tasks
        self._rules = ToolRules(settings.tools.helpers, settings.tools.effects, settings.tools.reads)
        self._paths = PathTable()
        self._tasks: Counter[str] = Counter()
        self._rows: dict[str, Row] = {}
        self._reopenable: set[str] = set()
        self._dropped: list[Row] = []
        self.windows: Mapping[str, AgentWindow] = {
            window.name: AgentWindow(window, settings, self._reopenable, self._dropped) for window in settings.windows
        }

    @property
    def first_window(self) -> AgentWindow:
        """The window that settings name first: the one of the UI, of histograms and of the API's list."""
        return next(iter(self.windows.values()))

    @property
    def empty(self) -> bool:
        """True if no run is left."""
        return not self._rows

    @property
    def last_run_ns(self) -> int | None:
        """End of its last run; None while it has none."""
        return max((end for window in self.windows.values() if (end := window.newest_ns) is not None), default=None)

    def told(self) -> Told:
        """Return what is emitted of it."""
        return Told(self.last_run_ns, {name: window.series() for name, window in self.windows.items()})

    @property
    def is_told(self) -> bool:
        """True if nothing changed since `told`."""
        return all(window.is_told for window in self.windows.values())

    def to_state(self) -> Mapping[str, Any]:
        """Return everything in plain values."""
        return write_agent(self)

    def row(self, run_id: str) -> Row | None:
        """Return the row of a run that a window still keeps."""
        return self._rows.get(run_id)

    def rows(self) -> list[Row]:
        """Return the rows that any window keeps, by (end time, run id)."""
        return sorted(self._rows.values())

    def is_reopenable(self, run_id: str) -> bool:
        """Return whether a run may still change."""
        return run_id in self._reopenable

    def close(self, run: Run) -> None:
        """Add a run that was closed; it replaces an earlier version of the same run."""
        self.withdraw(run)
        self.recent.add(run)
        row, task = row_of(run, self._paths, self._rules), self._task_of(run)
        self.enter(row if task == run.task_id else row._replace(task=task))

    def enter(self, row: Row) -> None:
        """Add the row of a run that may still change to all windows."""
        self._rows[row.run_id] = row
        self._reopenable.add(row.run_id)
        for name, window in self.windows.items():
            if not window.insert(row):
                self._accounts["refused", name] += 1
        self._forget_dropped()

    def withdraw(self, run: Run) -> None:
        """Remove a run; do nothing if it is not here."""
        self.recent.remove(run.run_id)
        row = self._rows.get(run.run_id)
        if row is not None:
            for window in self.windows.values():
                window.remove(row)
            self._forget_dropped()

    def settle(self, run: Run | Row) -> None:
        """Note that a run is final; do nothing if it is not here."""
        if run.run_id in self._reopenable:
            self._reopenable.discard(run.run_id)
            for window in self.windows.values():
                window.settle(self._rows[run.run_id])
            self._forget_dropped()

    def load(self, runs: Iterable[Run]) -> None:
        """Add final runs that were stored, in any order; they were counted before the restart."""
        accounts, self._accounts = self._accounts, Counter[tuple[str, str]]()
        for run in runs:
            self.close(run)
            self.settle(run)
        self._accounts = accounts

    def _task_of(self, run: Run) -> str | None:
        """Count a task of one more row, and return it: `__other__` beyond the limit."""
        task = run.task_id
        if task is None:
            return None
        if task not in self._tasks and len(self._tasks) >= self._max_tasks:
            self._accounts["tasks", "ceiling"] += 1
            return OTHER_TASK
        self._tasks[task] += 1
        return task

    def _forget_dropped(self) -> None:
        """Forget the rows that the windows dropped, unless another window keeps them."""
        if not self._dropped:
            return
        for row in self._dropped:
            if len(self.windows) == 1 or not any(row in window for window in self.windows.values()):
                self._forget(row)
        self._dropped.clear()

    def _forget(self, row: Row) -> None:
        if self._rows.pop(row.run_id, None) is None:
            return  # several windows dropped it
        self._reopenable.discard(row.run_id)
        if row.path is not None:
            self._paths.release(row.path)
        if row.task is not None and row.task in self._tasks:
            self._tasks[row.task] -= 1
            if not self._tasks[row.task]:
                del self._tasks[row.task]
