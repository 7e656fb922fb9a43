"""Missing data: what is missing, the numbers that need it, and how to add it, one line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.price_table import INSTALLED, price_of
from otel_reliability.report.text import clean, listed
from otel_reliability.report.view import Gap

OR_PRICES: Final = "" if INSTALLED else ", or install otel-reliability[prices]"
Lacking: TypeAlias = Callable[[Sequence[Row]], tuple[int, int]]
"""Count the runs that lack something, and those that could have it."""


CONTEXT_LIMITS: Final = "context limits"
COSTS: Final = "costs"


class RequiredData(NamedTuple):
    """A kind of data, the numbers that need it, how to add it, and a count of the runs that lack
    it.
    """

    missing: str
    unlocks: str
    remedy: str
    lacking: Lacking


def _each(lacks: Callable[[Row], bool], among: Callable[[Row], bool] = lambda _: True) -> Lacking:
    def count(rows: Sequence[Row]) -> tuple[int, int]:
        candidates = [row for row in rows if row.undisturbed and among(row)]
        return sum(map(lacks, candidates)), len(candidates)

    return count


def _attempted_once(rows: Sequence[Row]) -> tuple[int, int]:
    tasks = Counter(
        row.task for row in rows if row.undisturbed and row.task not in {None, OTHER_TASK}
    )
    return sum(runs == 1 for runs in tasks.values()), tasks.total()


def _undisturbed(rows: Sequence[Row]) -> tuple[int, int]:
    return (len(rows), len(rows)) if all(row.undisturbed for row in rows) else (0, len(rows))


REQUIRED_DATA: Final = (
    RequiredData(
        "task ids",
        "branches, consistency, effects, pass^k over tasks",
        'annotate(task_id="…") sets reliability.task.id',
        _each(lambda row: row.task is None),
    ),
    RequiredData(
        "second attempts at a task",
        "its paths, tools, branches, consistency",
        "run each task at least twice",
        _attempted_once,
    ),
    RequiredData(
        "tokens",
        "token budget pressure",
        "record gen_ai.usage.input_tokens and .output_tokens on model spans",
        _each(lambda row: row.tokens is None and row.pressure is None),
    ),
    RequiredData(
        CONTEXT_LIMITS,
        "token budget pressure",
        "--set 'context_limits=my-model*=128000'",
        _each(
            lambda row: row.pressure is None,
            lambda row: row.tokens is not None or row.pressure is not None,
        ),
    ),
    RequiredData(
        COSTS,
        "cost of runs, retries and loops",
        "annotate(cost=0.02), or tokens and model on each model span",
        _each(lambda row: row.cost is None, lambda row: bool(row.models)),
    ),
    RequiredData(
        "outcomes",
        "pass^k, consistency, calibration, robustness",
        "annotate(success=True), or an evaluation event named task_success",
        _each(lambda row: row.success is None),
    ),
    RequiredData(
        "confidence",
        "calibration, discrimination, Brier score",
        "annotate(confidence=0.8) sets reliability.run.confidence",
        _each(lambda row: row.confidence is None),
    ),
    RequiredData(
        "perturbed runs",
        "robustness to faults, structure, prompts",
        'repeat tasks under annotate(condition="fault"), "structure" or "prompt"',
        _undisturbed,
    ),
    RequiredData(
        "evaluated constraints",
        "safety",
        'annotate(violations=["refund_limit:high"]), or [] for a clean run',
        _each(lambda row: row.violations is None),
    ),
    RequiredData(
        "conversation ids",
        "session reliability and consistency",
        "record gen_ai.conversation.id on the agent's span",
        _each(lambda row: row.session_id is None),
    ),
    RequiredData(
        "evaluations in sessions",
        "session consistency",
        "gen_ai.evaluation.result events named confidence, coherence, …",
        _each(
            lambda row: "confidence" not in dict(row.signals),
            lambda row: row.session_id is not None,
        ),
    ),
)
"""The data that a run can carry, what the score needs first."""


def missing_of(rows: Sequence[Row]) -> list[Gap]:
    """Return what is missing in the runs of one agent.

    >>> from otel_reliability.testing import row
    >>> gaps = missing_of(
    ...     [
    ...         row("search", task="order", tokens=100),
    ...         row("search", task="order", tokens=100, pressure=0.1),
    ...     ]
    ... )
    >>> print(*(f"{gap.missing}: {gap.runs} of {gap.of}" for gap in gaps[:2]), sep="; ")
    context limits: 1 of 2; outcomes: 2 of 2
    """
    found = (Gap(*data[:3], *data.lacking(rows)) for data in REQUIRED_DATA)
    gaps = {gap.missing: gap for gap in found if gap.runs}
    if CONTEXT_LIMITS in gaps:
        gap = gaps[CONTEXT_LIMITS]
        models = models_without_limit(rows)
        if models:
            remedy = f"not known of {listed(models, 5)}: --set 'context_limits={models[0]}=128000'"
            gap = replace(gap, remedy=remedy)
        gaps[CONTEXT_LIMITS] = replace(gap, remedy=gap.remedy + OR_PRICES)
    if COSTS in gaps:
        gap = gaps[COSTS]
        models = models_without_price(rows)
        if models:
            gap = replace(gap, remedy=f"no list price of {listed(models, 5)}: annotate(cost=0.02)")
        gaps[COSTS] = replace(gap, remedy=gap.remedy + OR_PRICES)
    return list(gaps.values())


def models_without_price(rows: Sequence[Row]) -> list[str]:
    """Return the models of baseline runs whose tokens are known and whose cost is not, which the
    price table does not know by their name.
    """
    unpriced = [
        row for row in rows if row.undisturbed and row.cost is None and row.tokens is not None
    ]
    at = {name: row.start_ns for row in unpriced for name in row.models}
    return sorted({clean(name) for name, ns in at.items() if price_of(name, None, ns) is None})


def models_without_limit(rows: Sequence[Row]) -> list[str]:
    """Return the models of baseline runs whose tokens are known, and whose context limit is not."""
    unlimited = (
        row for row in rows if row.undisturbed and row.pressure is None and row.tokens is not None
    )
    return sorted({clean(name) for row in unlimited for name in row.models})
