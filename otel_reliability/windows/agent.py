"""The windows, the last whole runs, the paths and the tasks of one agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nlargest
from operator import attrgetter

from otel_reliability.config import Settings
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.paths import PathTable
from otel_reliability.windows.recent import RecentRuns
from otel_reliability.windows.rows import row_of
from otel_reliability.windows.window import AgentWindow


class AgentState:
    """One agent's runs, each kept once, as a row that all its windows share.

    `recent` are its last whole runs, the newest last. Runs that hit a limit are counted in `accounts`.
    """

    __slots__ = (
        "_accounts",
        "_dropped",
        "_max_tasks",
        "_paths",
        "_reopenable",
        "_tasks",
        "key",
        "recent",
        "windows",
    )

    def __init__(self, key: AgentKey, settings: Settings, accounts: Counter[tuple[str, str]]) -> None:
        self.key = key
        self.recent = RecentRuns(settings.limits.recent_runs)
        self._accounts = accounts
        self._max_tasks = settings.limits.tasks
        self._paths = PathTable()
        self._tasks: Counter[str] = Counter()
        self._reopenable: dict[str, int] = {}
        """Ends (ns) of the runs that may still change, by their ids."""
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
        return not any(window.runs or window.spares for window in self.windows.values())

    @property
    def last_run_ns(self) -> int | None:
        """End of its last run; None while it has none."""
        return max((end for window in self.windows.values() if (end := window.newest_ns) is not None), default=None)

    def row(self, run_id: str, end_ns: int | None = None) -> Row | None:
        """Return the row of a run that a window still keeps. A final run is found sooner by its end (ns).

        The row of a run that ended in the future has an earlier end than the run: it is searched.
        """
        end_ns = self._reopenable.get(run_id, end_ns)
        for window in self.windows.values():
            is_clamped = end_ns is not None and end_ns > (window.newest_ns or 0)
            row = window.find(run_id, None if is_clamped else end_ns)
            if row is not None:
                return row
        return None

    def close(self, run: Run) -> None:
        """Add a run that was closed; it replaces an earlier version of the same run."""
        end_ns = self._reopenable.get(run.run_id, run.end_ns)
        if any(window.find(run.run_id, end_ns) for window in self.windows.values()):
            self.withdraw(run)
        self.recent.add(run)
        self.enter(self._row_of(run))

    def enter(self, row: Row) -> None:
        """Add the row of a run that may still change to all windows."""
        self._reopenable[row.run_id] = row.end_ns
        for name, window in self.windows.items():
            if not window.insert(row):
                self._accounts["refused", name] += 1
        self._forget_dropped()

    def withdraw(self, run: Run) -> None:
        """Remove a run; do nothing if it is not here."""
        row = self.row(run.run_id)
        self.recent.remove(run.end_ns if row is None else row.end_ns, run.run_id)
        if row is not None:
            for window in self.windows.values():
                window.remove(row)
            self._forget_dropped()

    def finalize(self, run: Run | Row) -> None:
        """Note that a run is final; do nothing if it is not here."""
        end_ns = self._reopenable.pop(run.run_id, None)
        if end_ns is not None:
            self.recent.finalize(end_ns, run.run_id)
            for window in self.windows.values():
                window.finalize(end_ns, run.run_id)
            self._forget_dropped()

    def load(self, runs: Iterable[Run]) -> None:
        """Add final runs that were stored, in any order, each once; they were counted before the restart."""
        accounts, self._accounts = self._accounts, Counter[tuple[str, str]]()
        stored = list(runs)
        for run in nlargest(self.recent.limit, stored, key=attrgetter("end_ns", "run_id")):
            self.recent.add(run)
        for run in stored:
            self.enter(self._row_of(run))
            self.finalize(run)
        self._accounts = accounts

    def _row_of(self, run: Run) -> Row:
        row, task = row_of(run, self._paths), self._task_of(run)
        return row if task == run.task_id else row._replace(task=task)

    def _task_of(self, run: Run) -> str | None:
        """Count a task of one more row, and return it: `__other__` beyond the limit."""
        task = run.task_id
        if task is None:
            return None
        if task not in self._tasks and len(self._tasks) >= self._max_tasks:
            self._accounts["tasks", "limit"] += 1
            return OTHER_TASK
        self._tasks[task] += 1
        return task

    def _forget_dropped(self) -> None:
        """Forget the rows that the windows dropped, unless another window keeps them."""
        if not self._dropped:
            return
        dropped = {row.run_id: row for row in self._dropped}.values()
        self._dropped.clear()
        for row in dropped:
            if len(self.windows) == 1 or not any(window.keeps(row) for window in self.windows.values()):
                self._forget(row)

    def _forget(self, row: Row) -> None:
        self._reopenable.pop(row.run_id, None)
        if row.path is not None:
            self._paths.release(row.path)
        if row.task is not None and row.task in self._tasks:
            self._tasks[row.task] -= 1
            if not self._tasks[row.task]:
                del self._tasks[row.task]
