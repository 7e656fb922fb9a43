"""Contrast of two groups of runs in many features at once, with one error rate over all of them.

Every feature is a column: 0 or 1, or a number, NaN where it is not known. A column is ranked,
centred and scaled to length 1, so that its deviation z is the correlation with the group times √n:
for a column of 0 and 1 the z of two proportions, for numbers that of the rank sum.

The p-value of a feature is the share of permutations whose *greatest* |z| over all features reaches
that of the feature (Westfall and Young). So the probability of any false finding is at most the
level, and features that say nearly the same cost nothing.

Runs of one block (a task, a session) are not independent. A permutation therefore deals the groups
within each block, and swaps whole blocks of about one size; runs in a block of their own are dealt
freely.

References: P. Westfall, S. Young, *Resampling-Based Multiple Testing*, 1993, ch. 2; A. Winkler et
al., *Multi-level block permutation*, NeuroImage 123, 2015.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from otel_reliability.statistics.intervals import NORMAL
from otel_reliability.statistics.permutation import mean_ranks

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

PERMUTATIONS: Final = 999
POWER_Z: Final = 0.8416
"""Standard normal quantile of a power of 80 %."""
SIMILAR_SIZE: Final = 1.5
"""Blocks are swapped with blocks of at most so many times their size."""
_ROUNDING: Final = 1e-9


class Detectable(NamedTuple):
    """Difference that these runs would have shown in four of five cases: of a share (at worst, near
    one half), and of a mean in standard deviations. 1 or more: no share could have shown it.
    """

    share: float
    deviations: float


class Contrast(NamedTuple):
    """The deviation of each feature (positive: higher in the second group), its family-wise p, and
    what could have been found.
    """

    z: Sequence[float]
    p: Sequence[float]
    detectable: Detectable


def contrast(
    columns: Floats,
    second: Sequence[bool],
    blocks: Sequence[Hashable],
    *,
    level: float,
    within: bool = False,
    seed: int = 0,
) -> Contrast:
    """Contrast the runs of the second group with the others. `columns` has a row a run.

    `within` compares the runs of each block with one another alone: what differs between blocks
    does not count.

    >>> columns = np.array([[1.0, 5.0]] * 10 + [[0.0, 5.0]] * 10)
    >>> found = contrast(columns, [False] * 10 + [True] * 10, list(range(20)), level=0.05)
    >>> found.z, found.p[0] < 0.01, found.p[1]
    ([-4.47, 0.0], True, 1.0)
    """
    groups = np.array(second, dtype=np.float64)
    sizes = int(groups.sum()), int(len(groups) - groups.sum())
    _, members = np.unique(_numbered(blocks), return_inverse=True)
    scaled = _scaled(columns, members if within else np.zeros(len(members), dtype=np.int64))
    dealt = deals(groups, members, swap=not within, seed=seed)
    z = _deviations(groups[np.newaxis], scaled)[0]
    greatest = np.abs(_deviations(dealt, scaled)).max(axis=1, initial=0.0)
    reached = greatest[:, np.newaxis] >= np.abs(z) - _ROUNDING
    p = (1 + reached.sum(axis=0)) / (1 + len(dealt))
    critical = max(float(np.quantile(greatest, 1 - level)), NORMAL.inv_cdf(1 - level / 2))
    deviations = (critical + POWER_Z) * sqrt(1 / sizes[0] + 1 / sizes[1])
    return Contrast(z.tolist(), p.tolist(), Detectable(deviations / 2, deviations))


def deals(
    groups: Floats, members: Indices, *, swap: bool = True, seed: int = 0, most: int = PERMUTATIONS
) -> Floats:
    """Return permutations of the groups, a row each: within blocks and, with `swap`, of blocks of
    about one size.

    A block that takes the place of a larger one repeats some of its runs, that of a smaller one
    leaves some out.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(members, kind="stable")
    bounds = np.flatnonzero(np.diff(members[order])) + 1
    found = np.empty((most, len(groups)))
    for alike in _alike(np.split(order, bounds), swap=swap):
        widest = len(alike[-1])
        places = np.arange(widest)
        labels = groups[[block.take(places, mode="wrap") for block in alike]]
        picked = np.broadcast_to(labels, (most, *labels.shape))
        if len(alike) > 1:
            picked = labels.take(rng.random((most, len(alike))).argsort(axis=1), axis=0)
        if widest > 1:
            picked = rng.permuted(picked, axis=2)
        inside = places < np.array([[len(block)] for block in alike])
        found[:, np.concatenate(alike)] = picked[:, inside]
    return found


def _alike(blocks: Sequence[Indices], *, swap: bool) -> list[list[Indices]]:
    """Return the blocks, those of about one size together, in the order of their sizes."""
    classes: list[list[Indices]] = []
    for block in sorted(blocks, key=len):
        if classes and swap and len(block) <= SIMILAR_SIZE * len(classes[-1][0]):
            classes[-1].append(block)
        else:
            classes.append([block])
    return classes


def _numbered(blocks: Sequence[Hashable]) -> Indices:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(block, len(numbers)) for block in blocks], dtype=np.int64)


def _scaled(columns: Floats, strata: Indices) -> Floats:
    """Return each column ranked, centred in every stratum and of length 1; 0 where it is not
    known.
    """
    found = np.zeros(columns.shape)
    number = int(strata.max(initial=0)) + 1
    for at in range(columns.shape[1]):
        known = ~np.isnan(columns[:, at])
        ranks = mean_ranks(columns[known, at])
        sizes = np.bincount(strata[known], minlength=number)
        means = np.bincount(strata[known], ranks, minlength=number) / np.maximum(sizes, 1)
        centred = ranks - means[strata[known]]
        length = float(np.sqrt((centred**2).sum()))
        if length > _ROUNDING:
            found[known, at] = centred / length
    return found


def _deviations(groups: Floats, scaled: Floats) -> Floats:
    """Return z of each feature (columns) for each assignment of groups (rows)."""
    spread = groups.std(axis=1, keepdims=True)
    spread[spread < _ROUNDING] = 1.0
    found: Floats = (groups @ scaled) / spread
    return found
