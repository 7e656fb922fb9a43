"""What the rows of a window tell beyond its numbers: what costs most points, and which runs, tools and steps are behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.metrics.stability.decision_table import Decision, decision_table
from otel_reliability.metrics.stability.divergence import Divergence, divergences
from otel_reliability.metrics.stability.effect_table import TaskEffects, tasks_by_disagreement
from otel_reliability.metrics.stability.notable_runs import Explosion, Notable, explosions, fullest, oddest
from otel_reliability.metrics.stability.score import PENALTIES, costs_of
from otel_reliability.metrics.stability.tool_use import ToolUse, tool_use
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row
from otel_reliability.windows.window import AgentWindow

ODDEST: Final = 3
"""Runs unlike the others that are named."""


class Cost(NamedTuple):
    """What one part of the score costs: points of the most it can cost. `points` None: no evidence."""

    name: str
    points: float | None
    most: float


class Findings(NamedTuple):
    """The reasons behind a score, each list with what to look at first in front. `distances` are those of all runs' paths."""

    costs: tuple[Cost, ...]
    tools: Sequence[ToolUse]
    divergences: Sequence[Divergence]
    decisions: Sequence[Decision]
    explosions: Sequence[Explosion]
    fullest: Sequence[Notable]
    oddest: Sequence[Notable]
    effects: Sequence[TaskEffects]
    distances: Sequence[float] = ()

    @property
    def rare_tools(self) -> list[ToolUse]:
        """The tools that fewer than one run in five used, the rarest first."""
        return [use for use in reversed(self.tools) if use.rare]


def findings_of(
    window: AgentWindow, rows: Sequence[Row], readings: Mapping[str, Reading], settings: Settings
) -> Findings:
    """What is behind the numbers of a window."""
    by_task = settings.metrics.group_by == "task"
    every = oddest(rows, window.path_distance, len(rows))
    return Findings(
        costs=ranked_costs(readings),
        tools=tool_use(rows),
        divergences=divergences(rows, by_task=by_task),
        decisions=decision_table(rows),
        explosions=explosions(rows, settings.metrics.retry_threshold),
        fullest=fullest(rows),
        oddest=[odd for odd in every[:ODDEST] if odd.value > 0],
        effects=tasks_by_disagreement(rows, settings),
        distances=[one.value for one in every],
    )


def ranked_costs(readings: Mapping[str, Reading]) -> tuple[Cost, ...]:
    """The parts of the score, the dearest first, those without evidence last.

    >>> from otel_reliability.model.reading import NO_EVIDENCE
    >>> readings = dict.fromkeys(PENALTIES, NO_EVIDENCE) | {
    ...     "path_entropy": Reading(0.5, 9),
    ...     "tool_variance": Reading(1.0, 9),
    ... }
    >>> [(cost.name, cost.points) for cost in ranked_costs(readings)][:3]
    [('tool_variance', 20.0), ('path_entropy', 7.5), ('retry_explosion', None)]
    """
    told = costs_of(readings)
    costs = (Cost(name, told.get(name), most) for name, most in PENALTIES.items())
    return tuple(sorted(costs, key=lambda cost: (cost.points is None, -(cost.points or 0.0))))
