"""The findings of a window: which runs, tools and steps are behind its numbers, and what lowers the score most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics.stability.notable_runs import Notable, explosions, fullest
from otel_reliability.metrics.stability.score import PENALTIES, Score
from otel_reliability.metrics.stability.tables import decision_table, divergences, tasks_by_disagreement, tool_use
from otel_reliability.model.reading import Reading
from otel_reliability.model.row import Row
from otel_reliability.report.compression import compression_reasons
from otel_reliability.report.reasons import reasons_of
from otel_reliability.report.text import trace_of
from otel_reliability.report.view import (
    CompressionView,
    Cost,
    ExplodingRun,
    Findings,
    FullRun,
    ReadingView,
    UnusualRun,
)

UNUSUAL_RUNS: Final = 3
"""Runs unlike the others that are named."""


def findings_of(
    rows: Sequence[Row],
    metrics: Mapping[str, ReadingView],
    distances: Sequence[Notable],
    settings: Settings,
    compression: CompressionView | None,
    *,
    has_tasks: bool,
) -> Findings:
    """Return what is behind the numbers of these runs. `distances` are their path distances, the largest first."""
    found = Findings(
        costs=ranked_costs(metrics, settings),
        reasons=(),
        tools=tuple(tool_use(rows)),
        divergences=tuple(divergences(rows, by_task=settings.metrics.group_by == "task")),
        decisions=tuple(decision_table(rows)),
        exploding_runs=tuple(
            ExplodingRun(one.run_id, trace_of(one.run_id), *one[1:])
            for one in explosions(rows, settings.metrics.retry_threshold)
        ),
        runs_nearest_limit=tuple(FullRun(one.run_id, trace_of(one.run_id), one.value) for one in fullest(rows)),
        runs_unlike_others=_unusual(rows, distances),
        tasks_by_effects=tuple(tasks_by_disagreement(rows, settings)),
    )
    reasons = [*reasons_of(found, metrics, has_tasks=has_tasks), *compression_reasons(compression)]
    return replace(found, reasons=tuple(reasons))


def ranked_costs(metrics: Mapping[str, ReadingView], settings: Settings) -> tuple[Cost, ...]:
    """Return the parts of the score, the largest penalty first, those without data last.

    >>> metrics = dict.fromkeys(PENALTIES, ReadingView(None, 0)) | {
    ...     "path_entropy": ReadingView(0.5, 9),
    ...     "tool_variance": ReadingView(1.0, 9),
    ... }
    >>> [(cost.name, round(cost.points or 0, 1)) for cost in ranked_costs(metrics, Settings())][:3]
    [('tool_variance', 57.1), ('path_entropy', 21.4), ('retry_explosion', 0)]
    """
    readings = {name: Reading(metrics[name].value, metrics[name].runs) for name in PENALTIES}
    found = Score(settings).penalties(readings)
    costs = (Cost(name, *found.get(name, (None, points))) for name, points in PENALTIES.items())
    return tuple(sorted(costs, key=lambda cost: (cost.points is None, -(cost.points or 0.0))))


def _unusual(rows: Sequence[Row], distances: Sequence[Notable]) -> tuple[UnusualRun, ...]:
    named = [one for one in distances[:UNUSUAL_RUNS] if one.value > 0]
    by_id = {row.run_id: row for row in rows} if named else {}
    return tuple(_unusual_run(one, by_id[one.run_id]) for one in named)


def _unusual_run(one: Notable, row: Row) -> UnusualRun:
    steps = 0 if row.path is None else len(row.path.names)
    return UnusualRun(one.run_id, trace_of(one.run_id), one.value, row.task, steps)
