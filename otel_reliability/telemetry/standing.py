"""How a run stands among the others when it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.fleet import Fleet

_TOLD: Final[Callable[[Run], tuple[str, AgentKey, int]]] = itemgetter(
    *map(Run._fields.index, ("run_id", "key", "end_ns"))
)


class Standing(NamedTuple):
    """Whose counters a run goes to, and what the agent's first window says. None: no evidence."""

    counted_as: AgentKey
    score: float | None = None
    path_distance: float | None = None


def standings_of(runs: Sequence[Run], fleet: Fleet, most_paths: int) -> dict[str, Standing]:
    """How each of several runs stands, by its id. `most_paths`: how many distinct paths of a group are compared."""
    agents: dict[AgentKey, _Agent] = {}
    known: dict[int, _Agent] = {}
    found: dict[str, Standing] = {}
    for run_id, key, end_ns in map(_TOLD, runs):
        agent = known.get(id(key))  # most runs of an agent have one key
        if agent is None:
            agent = known[id(key)] = agents.get(key) or agents.setdefault(key, _Agent(key, fleet, most_paths))
        found[run_id] = agent.left if end_ns < agent.oldest_ns else agent.standing_of(run_id)
    return found


class _Agent:
    """An agent while its windows stay as they are: it has one score, and runs alike in path and task have one distance.

    Runs that ended before `oldest_ns` have left its windows, as far as it has any, and stand as `left` says. Where the window has
    more runs than distinct paths are compared, some of them may be left out: then each run is measured by itself.
    """

    __slots__ = ("_alike", "_all_count", "_standings", "_state", "_window", "left", "oldest_ns")

    def __init__(self, key: AgentKey, fleet: Fleet, most_paths: int) -> None:
        counted_as, state = fleet.counted_as(key), fleet.agent(key)
        self.left, self.oldest_ns = Standing(counted_as), inf
        if state is None:
            return
        self._state, self._window = state, state.first_window
        self.left = Standing(counted_as, self._window.reading("score").value)
        self.oldest_ns = min(window.oldest_ns for window in state.windows.values())
        self._alike = self._window.runs <= most_paths
        self._all_count = len(state.windows) == 1 and not self._window.spares
        self._standings: dict[Hashable, Standing] = {}

    def standing_of(self, run_id: str) -> Standing:
        """How one of its runs stands."""
        row = self._state.row(run_id)
        if row is None:
            return self.left
        path = row.path
        if not self._alike or path is None:
            return self._measured(row)
        like = path.code, row.task, row.condition, self._all_count or self._window.counts(row)
        found = self._standings.get(like)
        if found is None:
            found = self._standings[like] = self._measured(row)
        return found

    def _measured(self, row: Row) -> Standing:
        return self.left._replace(path_distance=self._window.path_distance(row).value)
