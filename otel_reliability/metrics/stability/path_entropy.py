"""path_entropy: does the agent take the same route to its goal each time?"""

from __future__ import annotations

import math

from otel_reliability.metrics._support.group_metric import PathMetric
from otel_reliability.metrics._support.run_group import RunGroup, Share
from otel_reliability.metrics._support.sums import Counts, clamp
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row


class PathCounts(RunGroup):
    """Counts of the paths of one group of runs."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        super().__init__()
        self._paths = Counts[str]()

    def count(self, row: Row, sign: int) -> None:
        if row.path is not None:
            self._paths.count(row.path.code, sign)

    def share(self) -> Share | None:
        runs = self.runs
        if runs < 2:
            return None
        bits = self._paths.bits()
        return Share((clamp(bits / math.log2(runs)), bits, self._paths.modal / runs), runs, runs)


class PathEntropy(PathMetric[PathCounts]):
    """Shannon entropy of the paths of n runs over its maximum: H = −Σ p log2 p, value H / log2 n.

    The value depends on n (half and half is 1.0 for 2 runs, 0.3 for 10), so the entropy in bits,
    which does not, stands beside it, and the share of the runs that took their task's most frequent
    path. State: integers, for each distinct path.

    >>> from otel_reliability.testing import rows_of
    >>> entropy = PathEntropy()
    >>> for row in rows_of(
    ...     "search_kb summarize respond",
    ...     "call_api parse search_kb respond",
    ...     "search_kb call_api respond",
    ... ):
    ...     entropy.add(row)
    ...     print(entropy.value().value)
    None
    1.0
    1.0
    """

    __slots__ = ()

    spec = MetricSpec(
        name="path_entropy",
        title="Path entropy",
        family="stability",
        direction="lower",
        description=(
            "How much the order of tool calls varies from run to run: 0 always the same, 1 "
            "never twice the same."
        ),
        formula="H(paths) / log2 n",
        required_data="2 runs of a task with observable tools",
        source="AgentCop, Reliability Layer",
        improve="Find where paths first diverge, and make that decision explicit: in the prompt, "
        "in the tool descriptions, "
        "or in code.",
        interval="comparison",
    )
    companions = (
        spec._replace(
            name="path_entropy_bits",
            title="Path entropy in bits",
            unit="{bit}",
            high=None,
            description=(
                "The entropy of the paths before it is divided by its maximum: it does not "
                "fall as the window grows."
            ),
            formula="H(paths) = −Σ p log2 p",
            source="Shannon (1948)",
            improve="As for path entropy.",
        ),
        spec._replace(
            name="modal_path_share",
            title="Share of the usual path",
            direction="higher",
            description="The share of runs that took the most frequent path of their task.",
            formula="Σ modal / Σ n over tasks of ≥ 2 runs",
            source="this project",
            improve="As for path entropy.",
        ),
    )
    values = 3

    def new_group(self) -> PathCounts:
        return PathCounts()

    def companion_values(self) -> tuple[Reading, ...]:
        return (self.mean(1), self.mean(2))
