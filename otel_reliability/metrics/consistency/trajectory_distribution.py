"""trajectory_distribution (C_traj_d): do successful attempts use their tools in the same proportions?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations

from otel_reliability.config import Settings
from otel_reliability.metrics._support.means import clamp, mean_of_present
from otel_reliability.metrics._support.pairs import ONE, Distances
from otel_reliability.metrics._support.profiles import Profile
from otel_reliability.metrics.consistency.trajectories import TrajectoryMean
from otel_reliability.model.reading import MetricSpec


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
    return mean_of_present(_of_task([proportions(Counter(path)) for path in paths if path], profile) for paths in tasks)


def _of_task(counts: Sequence[Mapping[str, float]], profile: Profile) -> float | None:
    distances = [distance(left, right, profile) for left, right in combinations(counts, 2)]
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
    """C_traj_d over the window: the successful attempts of a task pair by pair, then the mean over tasks.

    State: an integer for each distinct path. A run that enters or leaves costs one distance to each distinct path of its
    task. At most `limits.paths` distinct paths a task, the latest.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = TrajectoryDistribution()
    >>> for path in ("search reply", "reply search", "search ask reply close"):
    ...     metric.add(row(path, task="refund", outcome=Outcome.SUCCESS))
    ...     print(metric.value().value)
    None
    1.0
    0.6280

    References: HAL Reliability, *Methodology*, "Trajectory Distribution Consistency"; J. Lin, *Divergence Measures Based on
    the Shannon Entropy* (1991).
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
