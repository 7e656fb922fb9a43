"""trajectory_distribution (C_traj_d): do successful attempts use their tools in the same proportions?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from otel_reliability.metrics.means import mean_of_present
from otel_reliability.metrics.profiles import Profile


def divergence(left: Mapping[str, int], right: Mapping[str, int]) -> float:
    """Jensen–Shannon divergence in bits of two sets of counts: 0 for equal proportions, 1 for disjoint ones.

    JSD(P‖Q) = ½ D(P‖M) + ½ D(Q‖M) with M = (P + Q)/2, D the Kullback–Leibler divergence.

    >>> divergence({"a": 1, "b": 1}, {"a": 2, "b": 2}), divergence({"a": 3}, {"b": 1})
    (0.0, 1.0)
    """
    n_left, n_right = sum(left.values()), sum(right.values())
    terms: list[float] = []
    for tool in sorted({*left, *right}):
        p, q = left.get(tool, 0) / n_left, right.get(tool, 0) / n_right
        middle = (p + q) / 2
        terms += [share * math.log2(share / middle) for share in (p, q) if share]
    return min(max(math.fsum(terms) / 2, 0.0), 1.0)


def distance(left: Mapping[str, int], right: Mapping[str, int], profile: Profile = "published") -> float:
    """How far apart two attempts are: the Jensen–Shannon *distance* √JSD, under `hal-harness` the divergence JSD.

    >>> round(distance({"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}), 6)
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
    return mean_of_present(_of_task([Counter(path) for path in paths if path], profile) for paths in tasks)


def _of_task(counts: Sequence[Mapping[str, int]], profile: Profile) -> float | None:
    distances = [distance(left, right, profile) for left, right in combinations(counts, 2)]
    return 1.0 - math.fsum(distances) / len(distances) if distances else None
