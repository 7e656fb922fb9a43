"""How a run stands among the others when it is recorded."""

from __future__ import annotations

from typing import NamedTuple

from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.fleet import Fleet


class Standing(NamedTuple):
    """Whose counters a run goes to, and what the agent's first window says. None: no evidence."""

    counted_as: AgentKey
    score: float | None = None
    path_distance: float | None = None


def standing_of(run: Run, fleet: Fleet) -> Standing:
    """The agent's score now, and how far the run's path is from the other runs of its group in the window."""
    counted_as, state = fleet.counted_as(run.key), fleet.agent(run.key)
    if state is None:
        return Standing(counted_as)
    window, row = next(iter(state.windows.values())), state.row(run.run_id)
    distance = None if row is None else window.path_distance(row).value
    return Standing(counted_as, window.reading("score").value, distance)
