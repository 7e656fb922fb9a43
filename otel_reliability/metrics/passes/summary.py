"""The summary of the attempts at one task: what a gate can be set on by dot path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from otel_reliability.metrics.passes.attempts import (
    attempts_of,
    graceful_degradation,
    variance_amplification,
)
from otel_reliability.metrics.passes.decay_curve import decay_curve, entry
from otel_reliability.model.row import Row

TARGET_PREFIX = "reliability."


class ReliabilitySummary(NamedTuple):
    """The attempts at one task, in order. All but `runs` are whole percents.

    - `pass_at_k`: 100 if any attempt passed, else 0.
    - `passhat_k`: (c/N)^N, the last entry of the whole curve.
    - `decay_curve`: see `decay_curve`; no target.
    """

    runs: int
    pass_at_k: int
    passhat_k: int
    decay_curve: tuple[int, ...]
    variance_amplification: int
    graceful_degradation: int


TARGETS = tuple(
    f"{TARGET_PREFIX}{name}" for name in ReliabilitySummary._fields if name != "decay_curve"
)
"""The dot paths of the numbers of a summary."""


def summarize(outcomes: Sequence[bool]) -> ReliabilitySummary:
    """Return the summary of the attempts at one task, at least one, in their order.

    >>> summarize([True, True, True, False])
    ReliabilitySummary(runs=4, pass_at_k=100, passhat_k=31, decay_curve=(100, 100, 100, 31),
    variance_amplification=87, graceful_degradation=60)
    """
    runs = len(outcomes)
    passed = sum(outcomes)
    return ReliabilitySummary(
        runs,
        100 * bool(passed),
        entry(passed, runs),
        decay_curve(outcomes),
        variance_amplification(passed, runs),
        graceful_degradation(outcomes),
    )


def summaries(rows: Iterable[Row]) -> dict[str | None, ReliabilitySummary]:
    """Return the summary of each task among a window's rows: its baseline runs with a known
    outcome, in (start, run id) order.

    Without task ids all runs are attempts at one task, None. A target must hold for every summary.
    """
    return {task: summarize(outcomes) for task, outcomes in attempts_of(rows).items()}
