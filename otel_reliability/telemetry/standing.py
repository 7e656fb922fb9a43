"""How a run stands among the others when it is recorded."""

from __future__ import annotations

from typing import NamedTuple

from otel_reliability.metrics.stability.path_similarity import PathSimilarity
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
    similarity = window.metric("path_similarity")
    distance = similarity.distance(row).value if row is not None and isinstance(similarity, PathSimilarity) else None
    return Standing(counted_as, window.reading("score").value, distance)
