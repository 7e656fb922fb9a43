"""trajectory_distribution (C_traj_d) and trajectory_sequence (C_traj_s): do successful attempts at a task take alike paths?"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations

from otel_reliability.config import Settings
from otel_reliability.metrics._support.groups import (
    ONE,
    UNGROUPED,
    Distances,
    LatestPairs,
    Share,
    TaskMean,
    edit_units,
    path_code,
)
from otel_reliability.metrics._support.sums import clamp, mean_of_present
from otel_reliability.metrics.base import DEFAULTS, OUTCOME, PATH, TASK, UNDISTURBED, Profile, noted
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.model.row import Row
from otel_reliability.statistics.edits import edit_shares


class Trajectories(LatestPairs[str]):
    """The pairs of one task's attempts that count; every task weighs the same."""

    __slots__ = ()

    def share(self) -> Share | None:
        share = super().share()
        return None if share is None else share._replace(weight=1)


class TrajectoryMean(TaskMean[Trajectories]):
    """1 − the mean distance over the pairs of a task's successful attempts with a non-empty path, then the mean over tasks.

    Failures are left out: they may differ for reasons of their own. State: an integer for each distinct path. A run that enters
    or leaves costs one distance to each distinct path of its task. At most `limits.paths` distinct paths a task, the latest.
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
    def distances(self, settings: Settings) -> Distances[str]:
        """Return the distance of two paths."""

    def new_group(self, settings: Settings) -> Callable[[], Trajectories]:
        distances = self.distances(settings)
        return lambda: Trajectories(settings.limits.paths, distances, path_code, self.rows_with())

    def key(self, row: Row) -> Hashable:
        return super().key(row) if row.success and path_code(row) else UNGROUPED


def proportions(counts: Mapping[str, int]) -> dict[str, float]:
    """Counts as shares of their sum.

    >>> proportions({"a": 1, "b": 3})
    {'a': 0.25, 'b': 0.75}
    """
    total = sum(counts.values())
    return {tool: count / total for tool, count in counts.items()}


def divergence(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """Jensen–Shannon divergence in bits of two sets of proportions: 0 for equal ones, 1 for disjoint ones.

    JSD(P‖Q) = ½ D(P‖M) + ½ D(Q‖M) with M = (P + Q)/2, D the Kullback–Leibler divergence. What only one side uses adds its
    share. The sum is rounded once, so the value is the same seen from either side.

    >>> divergence({"a": 0.5, "b": 0.5}, {"b": 0.5, "a": 0.5}), divergence({"a": 1.0}, {"b": 1.0})
    (0.0, 1.0)
    """
    terms = [common(share, right[tool]) if tool in right else share for tool, share in left.items()]
    terms += [share for tool, share in right.items() if tool not in left]
    return clamp(math.fsum(terms) / 2)


@lru_cache(maxsize=16_384)
def common(p: float, q: float) -> float:
    """Return the term of a tool that both sides use: p log₂(p/m) + q log₂(q/m), m their mean. Few proportions occur, and often.

    >>> common(0.5, 0.5)
    0.0
    """
    middle = (p + q) / 2
    return p * math.log2(p / middle) + q * math.log2(q / middle)


def distance(left: Mapping[str, float], right: Mapping[str, float], profile: Profile = "published") -> float:
    """Return the distance of two attempts: the Jensen–Shannon *distance* √JSD, under `hal-harness` the divergence JSD.

    >>> round(distance({"a": 0.5, "b": 0.5}, {"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}), 6)
    0.557923
    """
    found = divergence(left, right)
    return math.sqrt(found) if profile == "published" else found


def trajectory_distribution(tasks: Iterable[Sequence[Sequence[str]]], profile: Profile = "published") -> float | None:
    """C_traj_d: 1 − the mean distance over all pairs of a task's successful attempts, then the mean over tasks.

    `tasks` holds, for each task, the paths (tool names in order) of its *successful* attempts; empty paths are left out.
    None where no task has two paths. The order of the tools does not matter: see `trajectory_sequence`.

    >>> trajectory_distribution([[["a", "b", "c"], ["c", "b", "a"]]])
    1.0
    >>> trajectory_distribution([[["a"], ["b"]], [["a"], []]])
    0.0
    """
    counts = ([proportions(Counter(path)) for path in paths if path] for paths in tasks)
    return mean_of_present(_agreement([distance(*pair, profile) for pair in combinations(task, 2)]) for task in counts)


def _agreement(distances: Sequence[float]) -> float | None:
    return 1.0 - math.fsum(distances) / len(distances) if distances else None


@lru_cache(maxsize=8_192)
def spelled(code: str) -> dict[str, float]:
    """The proportions of the tools of a path, from its code: one character a tool."""
    return proportions(Counter(code))


@lru_cache(maxsize=16_384)
def apart(code: str, other: str, profile: Profile) -> int:
    """The distance of two paths in the whole units of `pairs`. Agents that keep to few paths ask for few, often."""
    return int(distance(spelled(code), spelled(other), profile) * ONE)


def distances(code: str, others: list[str], profile: Profile = "published") -> list[int]:
    """The distance of a path to each other, in the whole units of `pairs`.

    >>> [share / ONE for share in distances("ab", ["ba", "cc"])]
    [0.0, 1.0]
    """
    return [apart(code, other, profile) for other in others]


class TrajectoryDistribution(TrajectoryMean):
    """`trajectory_distribution` over the window.

    References: J. Lin, *Divergence Measures Based on the Shannon Entropy* (1991).
    """

    __slots__ = ()

    spec = MetricSpec(
        name="trajectory_distribution",
        title="Trajectory distribution consistency (C_traj_d)",
        family="consistency",
        direction="higher",
        description="Whether the successful attempts at a task use their tools in the same proportions, in any order.",
        formula="mean over tasks of 1 − mean over pairs of √JSD, base 2; hal-harness: of JSD",
        evidence="2 successful runs of one task with tool calls",
        source="HAL reliability, evaluation methodology: C_traj_d",
        improve="See which tools only some of the successful runs use, and whether they are needed.",
        interval="comparison",
    )

    def distances(self, settings: Settings) -> Distances[str]:
        return partial(distances, profile=settings.metrics.profile)


def trajectory_sequence(tasks: Iterable[Sequence[Sequence[str]]]) -> float | None:
    """C_traj_s: 1 − the mean edit share over all pairs of a task's successful attempts, then the mean over tasks.

    `tasks` holds, for each task, the paths (tool names in order) of its *successful* attempts; empty paths are left out.
    None where no task has two paths.

    >>> round(trajectory_sequence([[["a", "b", "c"], ["c", "b", "a"]]]), 4)
    0.3333
    """
    taken = ([path for path in paths if path] for paths in tasks)
    return mean_of_present(
        _agreement([share for at, path in enumerate(task) for share in edit_shares(path, task[at + 1 :])])
        for task in taken
    )


class TrajectorySequence(TrajectoryMean):
    """`trajectory_sequence` over the window."""

    __slots__ = ()

    spec = MetricSpec(
        name="trajectory_sequence",
        title="Trajectory sequence consistency (C_traj_s)",
        family="consistency",
        direction="higher",
        description="Whether the successful attempts at a task take the same steps in the same order.",
        formula="mean over tasks of 1 − mean over pairs of Levenshtein / longer length",
        evidence="2 successful runs of one task with tool calls",
        source="HAL reliability, evaluation methodology: C_traj_s",
        improve="See where the paths of successful runs first diverge, and choose one way in the prompt.",
        interval="comparison",
    )

    def distances(self, settings: Settings) -> Distances[str]:
        return edit_units
