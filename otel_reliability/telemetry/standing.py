"""How a run stands among the others when it is recorded."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple, cast

from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.fleet import Fleet

_UNKNOWN: Final = object()


class Standing(NamedTuple):
    """Whose counters a run goes to, and what the agent's first window says. None: no evidence."""

    counted_as: AgentKey
    score: float | None = None
    path_distance: float | None = None


def standings_of(runs: Iterable[Run], fleet: Fleet, most_paths: int) -> dict[str, Standing]:
    """How each of several runs stands, by its id. `most_paths`: how many distinct paths of a group are compared."""
    agents: dict[AgentKey, _Agent | Standing] = {}
    found: dict[str, Standing] = {}
    for run in runs:
        agent = agents.get(run.key)
        if agent is None:
            counted_as, state = fleet.counted_as(run.key), fleet.agent(run.key)
            agent = Standing(counted_as) if state is None else _Agent(counted_as, state, most_paths)
            agents[run.key] = agent
        found[run.run_id] = agent if isinstance(agent, Standing) else agent.standing_of(run)
    return found


class _Agent:
    """An agent while its windows stay as they are: it has one score, and runs alike in path and task have one distance.

    Where the window has more runs than distinct paths are compared, some of them may be left
    out: then each run is measured by itself.
    """

    __slots__ = ("_alike", "_all_count", "_counted_as", "_distances", "_score", "_state", "_window")

    def __init__(self, counted_as: AgentKey, state: AgentState, most_paths: int) -> None:
        self._counted_as, self._state = counted_as, state
        self._window = state.first_window
        self._score = self._window.reading("score").value
        self._alike = self._window.runs <= most_paths
        self._all_count = len(state.windows) == 1 and not self._window.spares
        self._distances: dict[Hashable, float | None] = {}

    def standing_of(self, run: Run) -> Standing:
        """How one of its runs stands."""
        row = self._state.row(run.run_id)
        return Standing(self._counted_as, self._score, None if row is None else self._distance(row))

    def _distance(self, row: Row) -> float | None:
        window, path = self._window, row.path
        if not self._alike or path is None:
            return window.path_distance(row).value
        like = path.code, row.task, row.condition, self._all_count or window.counts(row)
        known = self._distances.get(like, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._distances[like] = window.path_distance(row).value
        return cast("float | None", known)
