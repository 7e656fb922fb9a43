"""One save: final runs take the place of the spans that they were built from, with everything else
that changed since the last save.

1. `Unsaved.take` collects what the database does not hold yet. It alone clears notes: from then on
   the save is the only one to know.
2. `statements` says which rows that means. It changes nothing.
3. One transaction runs them, all or none; then the save is dropped. One that could not be written
   is kept, and written before the next is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from otel_reliability.model.record import pack
from otel_reliability.model.run import AgentKey, Run, RunChange
from otel_reliability.state.clock import Moment
from otel_reliability.state.parts import FINAL_TRACES, FinalTraceRecords, Retention, StoredPart
from otel_reliability.state.store import Statement, Store
from otel_reliability.state.stored_arrivals import StoredArrivals
from otel_reliability.windows.agents import AgentRegistry


class PartChange(Struct, frozen=True):
    """Changes of a part: the bytes of keys that are gone, and the rows of the others."""

    name: str
    gone: list[bytes]
    rows: list[tuple[str, bytes, int, bytes]]


class ChangedRun(Struct, frozen=True):
    """The last change of a final run, and the run after it."""

    change: RunChange
    run: Run


class Save(Struct, frozen=True):
    """Everything that one transaction changes."""

    gone_agents: Sequence[int]
    agents: Sequence[tuple[int, AgentKey, float]]
    """Rows of `agent`, with those of all runs that are stored."""
    runs: Mapping[str, ChangedRun]
    """By run id."""
    unneeded: Sequence[int]
    """Rows of `arrival`."""
    parts: Sequence[PartChange]
    last: int
    moment: Moment

    def runs_of(self, change: RunChange) -> list[Run]:
        return [changed.run for changed in self.runs.values() if changed.change is change]


class Surplus:
    """The agents of new runs, each with the end (ns) before which none of its runs is needed.

    It is read within the transaction, so that the runs that the transaction adds count.
    """

    def __init__(
        self, agents: Iterable[int], retention: Retention, store: Callable[[], Store | None]
    ) -> None:
        self._agents = tuple(agents)
        self._retention = retention
        self._store = store

    def __iter__(self) -> Iterator[tuple[int, int]]:
        store = self._store()
        if store is None:
            return
        newest = "SELECT end_ns FROM run WHERE agent = ? ORDER BY end_ns DESC LIMIT 1 OFFSET ?"
        for agent in self._agents:
            for (last,) in store.rows(newest, agent, self._retention.last - 1):
                for (first,) in store.rows(newest, agent, 0):
                    yield agent, self._retention.oldest_end(first, last)


def statements(
    save: Save, retention: Retention, store: Callable[[], Store | None]
) -> list[Statement]:
    """Return the statements of a save, in the order in which they must run."""
    final = save.runs_of(RunChange.FINAL)
    revised = save.runs_of(RunChange.REVISED)
    withdrawn = save.runs_of(RunChange.WITHDRAWN)
    gone = [(number,) for number in save.gone_agents]
    numbers = {key: number for number, key, _ in save.agents}
    surplus = Surplus(dict.fromkeys(numbers[run.key] for run in final), retention, store)
    return [
        ("DELETE FROM run WHERE agent = ?", gone),
        ("DELETE FROM agent WHERE id = ?", gone),
        (
            "INSERT OR REPLACE INTO agent VALUES (?, ?, ?)",
            [(number, pack(key), seen) for number, key, seen in save.agents],
        ),
        (
            "INSERT OR REPLACE INTO run (run_id, agent, end_ns, body) VALUES (?, ?, ?, ?)",
            [(run.run_id, numbers[run.key], run.end_ns, pack(run)) for run in final],
        ),
        (
            "UPDATE run SET agent = ?, end_ns = ?, body = ? WHERE run_id = ?",
            [(numbers[run.key], run.end_ns, pack(run), run.run_id) for run in revised],
        ),
        ("DELETE FROM run WHERE run_id = ?", [(run.run_id,) for run in withdrawn]),
        ("DELETE FROM run WHERE agent = ? AND end_ns < ?", surplus),
        ("DELETE FROM arrival WHERE seq = ?", [(seq,) for seq in save.unneeded]),
        *(statement for part in save.parts for statement in _statements_of(part)),
        ("INSERT OR REPLACE INTO saved VALUES (1, ?, ?, ?)", [(save.last, *save.moment)]),
    ]


def _statements_of(part: PartChange) -> Iterator[Statement]:
    yield (
        "DELETE FROM part WHERE name = ? AND key = ?",
        [(part.name, key) for key in part.gone],
    )
    yield "INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?)", part.rows


class StoredAgents:
    """The rows of `agent`: their numbers by key."""

    def __init__(self, agents: AgentRegistry, now: Callable[[], float]) -> None:
        self._agents = agents
        self._now = now
        self._numbers: dict[AgentKey, int] = {}
        self._last = 0
        self._removed: list[int] = []

    def restore(self, numbers: dict[AgentKey, int]) -> None:
        self._numbers = numbers
        self._last = max(numbers.values(), default=0)

    def remove(self, key: AgentKey) -> None:
        """Note that an agent was removed: its row, and those of its runs, go."""
        number = self._numbers.pop(key, None)
        if number is not None:
            self._removed.append(number)

    def take_gone(self) -> list[int]:
        """Return the rows of agents that were removed or have expired, once."""
        gone = self._removed
        self._removed = []
        if len(self._numbers) > len(self._agents):
            expired = [key for key in self._numbers if self._agents.seen(key) is None]
            gone.extend(self._numbers.pop(key) for key in expired)
        return gone

    def take(self, keys: set[AgentKey]) -> list[tuple[int, AgentKey, float]]:
        """Return the rows of these agents, and of new ones: numbered as they were first seen."""
        new = [key for key in self._agents.keys() if key not in self._numbers]  # noqa: SIM118
        for key in (*new, *sorted(keys.difference(self._numbers, new))):
            self._last += 1
            self._numbers[key] = self._last
        return [
            (self._numbers[key], key, self._agents.seen(key) or self._now())
            for key in (*new, *keys.difference(new))
        ]


class Unsaved:
    """Changes that the database does not hold yet, and rows that it holds needlessly: noted as they
    happen.
    """

    def __init__(
        self,
        agents: StoredAgents,
        arrivals: StoredArrivals,
        final: FinalTraceRecords,
        parts: Mapping[str, StoredPart],
    ) -> None:
        self._agents = agents
        self._arrivals = arrivals
        self._parts: dict[str, StoredPart] = {FINAL_TRACES: final, **parts}
        self.runs: dict[str, ChangedRun] = {}
        """The last change of each final run, by run id."""
        self._removed: set[AgentKey] = set()
        """Agents that were removed, and had no run since."""
        self._position = 0

    def resume(self, position: int) -> None:
        """Go on after this position of the stored parts. What was noted is stored already."""
        self._position = position
        self.runs = {}
        for part in self._parts.values():
            for _ in part.changes():
                pass

    def return_of(self, key: AgentKey) -> None:
        """Note that an agent has a run: if it was removed, it is known again."""
        self._removed.discard(key)

    def change_run(self, change: RunChange, run: Run) -> None:
        """Note a change of a final run: the last of each counts. A run of a removed agent that was
        not final yet is not stored.
        """
        noted = self.runs.get(run.run_id)
        if change is RunChange.REVISED and noted is not None and noted.change is RunChange.FINAL:
            change = RunChange.FINAL  # its row is not written yet
        if run.key not in self._removed:
            self.runs[run.run_id] = ChangedRun(change, run)

    def remove(self, key: AgentKey) -> None:
        """Note that an agent was removed: what is stored of it goes, and what was noted."""
        self._removed.add(key)
        self.runs = {
            run_id: changed for run_id, changed in self.runs.items() if changed.run.key != key
        }
        self._agents.remove(key)

    def take(self, now: float) -> Save:
        """Return everything that changed since the last save, and clear the notes of it."""
        runs = self.runs
        self.runs = {}
        gone = self._agents.take_gone()
        stored = [
            changed.run for changed in runs.values() if changed.change is not RunChange.WITHDRAWN
        ]
        agents = self._agents.take({run.key for run in stored})
        unneeded = list(self._arrivals.unneeded(now))  # before parts: it notes final traces
        return Save(
            gone,
            agents,
            runs,
            unneeded,
            [self._take_part(name, part) for name, part in self._parts.items()],
            self._arrivals.last,
            self._arrivals.moment,
        )

    def _take_part(self, name: str, part: StoredPart) -> PartChange:
        """Return what changed of a part, as bytes: its values may change before they are
        written.
        """
        gone: list[bytes] = []
        rows: list[tuple[str, bytes, int, bytes]] = []
        for key, body in part.changes():
            self._position += 1
            if body is None:
                gone.append(pack(key))
            else:
                rows.append((name, pack(key), self._position, pack(body)))
        return PartChange(name, gone, rows)
