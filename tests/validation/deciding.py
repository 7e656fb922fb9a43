"""How early an experiment decides, and how often it is wrong: simulated experiments that look after
every attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from otel_reliability.metrics.passes.run_counts import recommend_runs
from otel_reliability.statistics.sequential import SequentialDecision, decide

TARGET: Final = 0.9
ALPHA: Final = 0.05
EXPERIMENTS: Final = 2_000
MAX_RUNS: Final = recommend_runs(0.05)
RATES: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.88, 0.9, 0.92, 0.95, 0.98, 0.99)
UNLIKE: Final = (1.0, 1.0, 1.0, 0.9, 0.6)
"""Success rates of five tasks: their mean is the target."""


class Decided(NamedTuple):
    """Shares of experiments that ended in each way, and their mean number of runs."""

    passed: float
    failed: float
    runs: float

    def wrong(self, rate: float) -> float:
        """Return the share of wrong decisions: PASS below the target, FAIL from it on."""
        return self.passed if rate < TARGET else self.failed


@cache
def decision(passed: int, failed: int, missing: int) -> SequentialDecision:
    return decide({1.0: passed, 0.0: failed}, TARGET, ALPHA, missing=missing)


def simulate(
    rates: Sequence[float], experiments: int = EXPERIMENTS, max_runs: int = MAX_RUNS
) -> Decided:
    """Return how experiments end whose tasks, in turn, succeed with these rates."""
    rounds = -(-max_runs // len(rates))
    draws = np.random.default_rng(0).random((experiments, rounds, len(rates))) < np.array(rates)
    ends = Counter[SequentialDecision]()
    total = 0
    for outcomes in draws.reshape(experiments, -1)[:, :max_runs]:
        passed = np.cumsum(outcomes).tolist()
        found = SequentialDecision.UNDECIDED
        runs = 0
        for runs, successes in enumerate(passed, 1):
            found = decision(successes, runs - successes, -runs % len(rates))
            if found is not SequentialDecision.UNDECIDED:
                break
        ends[found] += 1
        total += runs
    return Decided(
        ends[SequentialDecision.PASS] / experiments,
        ends[SequentialDecision.FAIL] / experiments,
        total / experiments,
    )


def table() -> Iterator[str]:
    """Yield the lines of the table, a rate each, then the unlike tasks."""
    yield "| true rate | PASS | FAIL | undecided | wrong | mean runs |"
    yield "|---|---|---|---|---|---|"
    for rate in RATES:
        yield _line(f"{rate:g}", rate, simulate([rate]))
    words = ", ".join(f"{rate:g}" for rate in UNLIKE)
    yield _line(f"{np.mean(UNLIKE):.2g}: tasks of {words}", TARGET, simulate(UNLIKE))


def _line(name: str, rate: float, found: Decided) -> str:
    undecided = max(0.0, 1 - found.passed - found.failed)
    cells = (name, *(f"{share:.3f}" for share in (found.passed, found.failed, undecided)))
    return f"| {' | '.join(cells)} | {found.wrong(rate):.3f} | {found.runs:.0f} |"
