"""What is known of one agent: its windows, its last whole runs, its paths and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from otel_reliability.config import Settings
from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.model.tools import ToolRules
from otel_reliability.windows.compiled import row_of
from otel_reliability.windows.kept import Standing, read_row, write_row
from otel_reliability.windows.paths import PathTable
from otel_reliability.windows.recent import RecentRuns
from otel_reliability.windows.told import Told
from otel_reliability.windows.window import AgentWindow


class AgentState:
    """One agent's runs, each kept once, as a row that all its windows share.

    `recent` are its last whole runs, the newest last. `seen` is when, by the engine's clock, a run of it was last closed here.
    What hits a ceiling is counted in `accounts`.
    """

    __slots__ = (
        "_accounts",
        "_entering",
        "_most_tasks",
        "_paths",
        "_reopenable",
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
        self._most_tasks = settings.limits.tasks
        self._rules = ToolRules(settings.tools.helpers, settings.tools.effects, settings.tools.reads)
        self._paths = PathTable()
        self._tasks: Counter[str] = Counter()
        self._reopenable: dict[str, Row] = {}
        self._entering = ""
        self.windows: Mapping[str, AgentWindow] = {
            window.name: AgentWindow(window, settings, self._reopenable, self._dropped) for window in settings.windows
        }

    @property
    def first_window(self) -> AgentWindow:
        """The window that settings name first: the one of pages, histograms and the API's list."""
        return next(iter(self.windows.values()))

    @property
    def empty(self) -> bool:
        """Whether no run is left."""
        return not any(window.newest_ns is not None for window in self.windows.values())

    @property
    def last_run_ns(self) -> int | None:
        """When its last run ended; None while it has none."""
        return max((end for window in self.windows.values() if (end := window.newest_ns) is not None), default=None)

    def row(self, run_id: str) -> Row | None:
        """The row of a run that a window still keeps."""
        row = self._reopenable.get(run_id)
        return row if row is not None else self._find(run_id)

    def close(self, run: Run) -> None:
        """A run was closed, or closed anew."""
        run_id, reopenable, recent = run.run_id, self._reopenable, self.recent
        if run_id in reopenable or run_id in recent or self._find(run_id) is not None:
            self.withdraw(run)
        row = self._row_of(run)
        self._entering = run_id
        reopenable[run_id] = row
        recent.add(run)
        refused = [name for name, window in self.windows.items() if not window.insert(row)]
        self._entering = ""
        if refused:
            self.refuse(row, refused)

    def refuse(self, row: Row, windows: Collection[str]) -> None:
        """These windows did not take a row that came."""
        for name in windows:
            self._accounts["refused", name] += 1
        if len(windows) == len(self.windows):
            self._forget(row)

    def withdraw(self, run: Run) -> None:
        """A run is gone; nothing happens if it was not there."""
        run_id = run.run_id
        self.recent.remove(run_id)
        row = self._reopenable.get(run_id) or self._find(run_id)
        if row is not None:
            for window in self.windows.values():
                window.remove(row)

    def settle(self, run: Run) -> None:
        """A run will not change any more; nothing happens if it is not there."""
        reopenable, run_id = self._reopenable, run.run_id
        row = reopenable.pop(run_id, None)
        if row is not None:
            self.recent.settle(run_id)
            if not reopenable:
                reopenable.clear()  # gives back the room that many took
            for window in self.windows.values():
                window.settle(row)

    def told(self) -> Told:
        """What is emitted of it."""
        return Told(self.last_run_ns, {name: window.series() for name, window in self.windows.items()})

    @property
    def is_told(self) -> bool:
        """Whether `told` costs nothing: nothing has changed since it was last asked for."""
        return all(window.is_told for window in self.windows.values())

    def to_state(self) -> dict[str, Any]:
        """Everything but what all agents share, in plain values."""
        return {
            "rows": [(write_row(row), row.run_id in self._reopenable, self._without(row)) for row in self._kept()],
            "windows": {name: tuple(window.standing) for name, window in self.windows.items()},
            "recent": self.recent.to_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `to_state` wrote, into the windows that there are now, while there are no runs."""
        self.recent.restore(state["recent"])
        rows = [(read_row(plain, self._paths), *rest) for plain, *rest in state["rows"]]
        for row, reopenable, _ in rows:
            self._take_back(row, reopenable=reopenable)
        latest = max((row.end_ns for row, reopenable, _ in rows if not reopenable), default=None)
        known = {name: Standing(*one) for name, one in state["windows"].items()}
        standings = {name: known.get(name, Standing(0, latest, 0)) for name in self.windows}
        self._restore_standings(standings)
        for name, window in self.windows.items():
            window.refill([row for row, _, without in rows if name not in without])
        for window in self.windows.values():
            window.trim()
        for row, _, without in rows:
            if not self.windows.keys() - set(without):
                self._forget(row)
        self._restore_standings(standings)

    def _find(self, run_id: str) -> Row | None:
        for window in self.windows.values():
            row = window.find(run_id)
            if row is not None:
                return row
        return None

    def _kept(self) -> list[Row]:
        """The rows of all windows, each once, in order."""
        rows = {row.run_id: row for window in self.windows.values() for row in window.kept()}
        return sorted(rows.values())

    def _take_back(self, row: Row, *, reopenable: bool) -> None:
        if reopenable:
            self._reopenable[row.run_id] = row
        if row.task is not None and row.task != OTHER_TASK:
            self._tasks[row.task] += 1

    def _without(self, row: Row) -> tuple[str, ...]:
        """The names of the windows that let go of a row which another keeps."""
        if len(self.windows) == 1:
            return ()
        return tuple(name for name, window in self.windows.items() if row not in window)

    def _restore_standings(self, standings: Mapping[str, Standing]) -> None:
        """Before the rows, since it says which of them are spent; and after, since they were counted before."""
        for name, window in self.windows.items():
            window.restore(standings[name])

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
        if row.run_id != self._entering and not (len(self.windows) > 1 and self._is_kept(row)):
            self._forget(row)

    def _forget(self, row: Row) -> None:
        self._reopenable.pop(row.run_id, None)
        path, task = row.path, row.task
        if path is not None:
            self._paths.release(path)
        if task is not None and task in self._tasks:
            self._tasks[task] -= 1
            if not self._tasks[task]:
                del self._tasks[task]

    def _is_kept(self, row: Row) -> bool:
        """Whether a window still has a row of which another has let go."""
        return any(row in window for window in self.windows.values())
