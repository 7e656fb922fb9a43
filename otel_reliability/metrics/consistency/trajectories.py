"""trajectory_distribution (C_traj_d) and trajectory_sequence (C_traj_s): do successful attempts at
a task take alike paths?
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping
from functools import lru_cache

from otel_reliability.config import Settings
from otel_reliability.metrics._support.group_metric import UNGROUPED, TaskMean
from otel_reliability.metrics._support.latest_pairs import ONE, LatestPairs, edit_units, path_code
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import DEFAULTS, OUTCOME, PATH, TASK, UNDISTURBED, Profile, noted
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row


class TrajectoryMean(TaskMean[LatestPairs[str]]):
    """1 − the mean distance over the pairs of a task's successful attempts with a non-empty path,
    then the mean over tasks.

    Failures are left out: they may differ for reasons of their own. State: an integer for each
    distinct path. A run that enters or leaves costs one distance to each distinct path of its task.
    At most `limits.paths` distinct paths a task, the latest.
    """

    __slots__ = ("_by_status",)

    requires = UNDISTURBED | TASK | OUTCOME | PATH

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._by_status = 0

    def count(self, row: Row, sign: int) -> None:
        super().count(row, sign)
        self._by_status += sign * (row.by_status and self.key(row) is not UNGROUPED)

    def value(self) -> Reading:
        return noted(super().value(), self._by_status)

    @abstractmethod
    def distances(self, code: str, others: list[str]) -> list[int]:
        """Return the distance of a path to each other, in units of 2^-52."""

    def new_group(self) -> LatestPairs[str]:
        return self.pairs(self.distances, path_code, by_runs=False)

    def key(self, row: Row) -> Hashable:
        return super().key(row) if row.success and path_code(row) else UNGROUPED


@lru_cache(maxsize=8_192)
def proportions(code: str) -> dict[str, float]:
    """Return each tool's share of the calls of a path, from its code: one character a tool.

    >>> proportions("abbb")
    {'a': 0.25, 'b': 0.75}
    """
    return {tool: count / len(code) for tool, count in Counter(code).items()}


def divergence(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """Jensen–Shannon divergence in bits of two sets of proportions: 0 for equal ones, 1 for
    disjoint ones.

    JSD(P‖Q) = ½ D(P‖M) + ½ D(Q‖M) with M = (P + Q)/2, D the Kullback–Leibler divergence. What only
    one side uses adds its share. The sum is rounded once, so the value is the same seen from either
    side.

    >>> divergence({"a": 0.5, "b": 0.5}, {"b": 0.5, "a": 0.5}), divergence({"a": 1.0}, {"b": 1.0})
    (0.0, 1.0)
    """
    terms = [common(share, right[tool]) if tool in right else share for tool, share in left.items()]
    terms += [share for tool, share in right.items() if tool not in left]
    return clamp(math.fsum(terms) / 2)


@lru_cache(maxsize=16_384)
def common(p: float, q: float) -> float:
    """Return the term of a tool that both sides use: p log₂(p/m) + q log₂(q/m), m their mean. Few
    proportions occur, and often.

    >>> common(0.5, 0.5)
    0.0
    """
    middle = (p + q) / 2
    return p * math.log2(p / middle) + q * math.log2(q / middle)


@lru_cache(maxsize=16_384)
def apart(code: str, other: str, profile: Profile) -> int:
    """Return the Jensen–Shannon *distance* √JSD of two paths, under `hal-harness` the divergence
    JSD, in units of 2^-52.

    Agents that keep to few paths ask for few, often.

    >>> round(apart("ab", "abcd", "published") / ONE, 6)
    0.557923
    """
    found = divergence(proportions(code), proportions(other))
    return int((math.sqrt(found) if profile == "published" else found) * ONE)


class TrajectoryDistribution(TrajectoryMean):
    """C_traj_d: 1 − the mean distance of the proportions of tools; their order does not matter, see
    `trajectory_sequence`.

    References: J. Lin, *Divergence Measures Based on the Shannon Entropy* (1991).
    """

    __slots__ = ()

    spec = MetricSpec(
        name="trajectory_distribution",
        title="Trajectory distribution consistency (C_traj_d)",
        family="consistency",
        direction="higher",
        description=(
            "Whether the successful attempts at a task use their tools in the same "
            "proportions, in any order."
        ),
        formula="mean over tasks of 1 − mean over pairs of √JSD, base 2; hal-harness: of JSD",
        required_data="2 successful runs of one task with tool calls",
        source="HAL reliability, evaluation methodology: C_traj_d",
        improve=(
            "See which tools only some of the successful runs use, and whether they are needed."
        ),
        interval="comparison",
    )

    def distances(self, code: str, others: list[str]) -> list[int]:
        profile = self._settings.metrics.profile
        return [apart(code, other, profile) for other in others]


class TrajectorySequence(TrajectoryMean):
    """C_traj_s: 1 − the mean edit distance over the longer length of the two paths."""

    __slots__ = ()

    spec = MetricSpec(
        name="trajectory_sequence",
        title="Trajectory sequence consistency (C_traj_s)",
        family="consistency",
        direction="higher",
        description=(
            "Whether the successful attempts at a task take the same steps in the same order."
        ),
        formula="mean over tasks of 1 − mean over pairs of Levenshtein / longer length",
        required_data="2 successful runs of one task with tool calls",
        source="HAL reliability, evaluation methodology: C_traj_s",
        improve=(
            "See where the paths of successful runs first diverge, and choose one way in the "
            "prompt."
        ),
        interval="comparison",
    )

    def distances(self, code: str, others: list[str]) -> list[int]:
        return edit_units(code, others)
