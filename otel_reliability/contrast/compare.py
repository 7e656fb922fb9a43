"""Two sets of runs of an agent: what differs between them by more than chance?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from otel_reliability.contrast.features import KINDS, ORIGINS, Design, Feature, design
from otel_reliability.contrast.sample import Sample, latest
from otel_reliability.statistics.contrast import Contrast, Detectable, contrast
from otel_reliability.statistics.permutation import Floats
from otel_reliability.statistics.significance import OF_NUMBERS, SIGNIFICANCE_LEVEL

Flags: TypeAlias = NDArray[np.bool_]

MIN_RUNS: Final = 5
"""Minimum runs of either side."""
LEVEL: Final = SIGNIFICANCE_LEVEL - OF_NUMBERS
"""The probability, over all features together, of a false difference."""
MAX_EXAMPLES: Final = 3
SAME: Final = 0.9
"""The correlation from which two features say the same of these runs."""
OF_ORDER: Final = frozenset({"many", "ends", "begins", "then", "path"})
"""Kinds that are left out of a comparison where a stronger feature says the same."""
_ORDER: Final = {kind: at for at, kind in enumerate(KINDS)}


class Side(NamedTuple):
    """The runs of one side: of how many the feature is known, how many of them are counted (those
    that have it, or in a finding those that fail; None for a number), and its share or mean.
    """

    runs: int
    counted: int | None
    value: float | None


class Difference(NamedTuple):
    """One feature that differs. `p` is family-wise, over all features. `runs` are the ids of runs
    that show it: of the side where it is more frequent, or those with the greatest number.
    """

    feature: Feature
    p: float
    z: float
    before: Side
    after: Side
    runs: tuple[str, ...]


class Compared(NamedTuple):
    """Differences between two sets of runs, the largest deviation first.

    `why` is the reason why nothing can be compared; empty where something was. `shared_tasks` is
    the share of runs whose task the other side has too, None where not all tasks are known.
    """

    before: int
    after: int
    features: int = 0
    differences: tuple[Difference, ...] = ()
    detectable: Detectable | None = None
    shared_tasks: float | None = None
    why: str = ""

    @property
    def differs(self) -> bool | None:
        """Return whether anything differs; None where nothing could be compared."""
        return None if self.why else bool(self.differences)


def compare(before: Sequence[Sample], after: Sequence[Sample]) -> Compared:
    """Return what differs between two sets of runs, with at most 4 % probability of any false
    difference. How the runs were made (model, version, input group) is not compared.
    """
    one = latest(before)
    two = latest(after)
    uncompared = Compared(len(one), len(two))
    if min(len(one), len(two)) < MIN_RUNS:
        return uncompared._replace(
            why=(
                f"either side needs {MIN_RUNS} complete runs; there are {len(one)} before and "
                f"{len(two)} after"
            )
        )
    samples = [*one, *two]
    second = [False] * len(one) + [True] * len(two)
    found = design(samples, without=ORIGINS)
    result = contrast(found.columns, second, [sample.block for sample in samples], level=LEVEL)
    return uncompared._replace(
        features=len(found.features),
        differences=tuple(_differences(samples, np.array(second), found, result)),
        detectable=result.detectable,
        shared_tasks=_shared_tasks(one, two),
    )


def _differences(
    samples: Sequence[Sample], second: Flags, found: Design, result: Contrast
) -> list[Difference]:
    differing = [at for at, p in enumerate(result.p) if p <= LEVEL]
    return [
        Difference(
            feature=found.features[at],
            p=result.p[at],
            z=result.z[at],
            before=side(found, at, ~second),
            after=side(found, at, second),
            runs=examples(samples, found.columns[:, at], second == (result.z[at] > 0)),
        )
        for at in strongest(found, result.z, differing, may_drop=OF_ORDER)
    ]


def strongest(
    found: Design, z: Sequence[float], chosen: Sequence[int], *, may_drop: Collection[str]
) -> list[int]:
    """Return the chosen features, the largest deviation first, without those of the kinds
    `may_drop` that say the same as one before them.
    """

    def rank(at: int) -> tuple[float, bool, int, int]:
        kind = found.features[at].kind
        return -round(abs(z[at]), 6), z[at] < 0, _ORDER.get(kind, len(_ORDER)), at

    order = sorted(chosen, key=rank)
    kept: list[int] = []
    for at in order:
        column = found.columns[:, at]
        if found.features[at].kind not in may_drop or all(
            _alike(column, found.columns[:, other]) < SAME for other in kept
        ):
            kept.append(at)
    return kept


def _alike(one: Floats, other: Floats) -> float:
    """Return the absolute correlation of two features over the runs where both are known."""
    both = ~(np.isnan(one) | np.isnan(other))
    if both.sum() < 2 or not np.ptp(one[both]) or not np.ptp(other[both]):
        return 0.0
    return abs(float(np.corrcoef(one[both], other[both])[0, 1]))


def side(found: Design, at: int, chosen: Flags) -> Side:
    """Return the share (or the mean, of a number) of a feature among the chosen runs."""
    column = found.columns[:, at]
    values = column[chosen & ~np.isnan(column)]
    counted = int(values.sum()) if found.features[at].kind in KINDS else None
    return Side(len(values), counted, float(values.mean()) if len(values) else None)


def examples(samples: Sequence[Sample], column: Floats, chosen: Flags) -> tuple[str, ...]:
    """Return the runs among the chosen ones in which the feature is clearest, the latest first."""
    rows: list[int] = np.flatnonzero(chosen & (np.nan_to_num(column) > 0)).tolist()
    values: list[float] = column.tolist()
    rows.sort(key=lambda at: (-values[at], -samples[at].end_ns, samples[at].run_id))
    return tuple(samples[at].run_id for at in rows[:MAX_EXAMPLES])


def _shared_tasks(before: Sequence[Sample], after: Sequence[Sample]) -> float | None:
    earlier = {sample.task for sample in before}
    later = {sample.task for sample in after}
    if None in earlier | later:
        return None
    shared = sum(sample.task in later for sample in before)
    shared += sum(sample.task in earlier for sample in after)
    return shared / (len(before) + len(after))
