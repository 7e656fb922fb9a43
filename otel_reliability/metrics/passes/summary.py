"""The summary of the attempts at one task: what a gate can be set on by dot path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from otel_reliability.metrics._support.groups import passes
from otel_reliability.metrics.passes.attempts import attempts_of, graceful_degradation, variance_amplification
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

    def metrics_object(self) -> dict[str, int]:
        """The targets by dot path.

        >>> summarize([1, 1, 1, 0]).metrics_object()["reliability.passhat_k"]
        31
        """
        return {f"{TARGET_PREFIX}{name}": value for name, value in self._asdict().items() if name != "decay_curve"}

    def resolve_target(self, path: str) -> int | None:
        """The value a dot path names; None, never 0, for any other path.

        >>> summary = summarize([1, 1, 1, 0])
        >>> summary.resolve_target("reliability.runs"), summary.resolve_target("reliability.decay_curve")
        (4, None)
        """
        return self.metrics_object().get(path)


TARGETS = tuple(f"{TARGET_PREFIX}{name}" for name in ReliabilitySummary._fields if name != "decay_curve")
"""Every dot path that `resolve_target` knows."""


def summarize(outcomes: Sequence[float]) -> ReliabilitySummary | None:
    """The summary of the attempts at one task in their order; None without attempts. An outcome below 1 is a failure.

    >>> summarize([1, 1, 1, 0])
    ReliabilitySummary(runs=4, pass_at_k=100, passhat_k=31, decay_curve=(100, 100, 100, 31), variance_amplification=87, \
graceful_degradation=60)
    """
    runs, passed = len(outcomes), passes(outcomes)
    variance, graceful = variance_amplification(passed, runs), graceful_degradation(outcomes)
    if variance is None or graceful is None:
        return None
    return ReliabilitySummary(runs, 100 * bool(passed), entry(passed, runs), decay_curve(outcomes), variance, graceful)


def summaries(rows: Iterable[Row]) -> dict[str | None, ReliabilitySummary]:
    """The summary of each task among a window's rows: its baseline runs with a known outcome, in (start, run id) order.

    Without task ids all runs are attempts at one task, None. A target must hold for every summary.
    """
    found = ((task, summarize(outcomes)) for task, outcomes in attempts_of(rows).items())
    return {task: summary for task, summary in found if summary is not None}
