"""step_predictability: how much of the next step does the current one determine?"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Final

from otel_reliability.metrics.base import PATH, UNDISTURBED, WindowMetric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading

MIN_TRANSITIONS: Final = 60
MIN_MEAN_LENGTH: Final = 1.5
"""Mean steps of a run below which there is hardly a next step."""
REDRAWS: Final = 20
BOUNDARY: Final = 0
"""The start of a run as a current step, its end as a next one."""


class StepPredictability(WindowMetric):
    """(raw − base) / (1 − base), where raw = 1 − H(next step | current step) / H(next step), with a
    start and an end of each run.

    *base* is the mean raw of 20 seeded redraws: runs of the same lengths, with tools drawn
    independently from those of the window. Unlike an entropy over log2 n it does not depend on the
    size of the window. At most 0.1 sets the flag `random_steps`.

    >>> from otel_reliability.testing import rows_of
    >>> steady = StepPredictability()
    >>> for row in rows_of(*["search read reply"] * 20):
    ...     steady.add(row)
    >>> steady.value().value
    1.0

    References: H. Theil, *On the Estimation of Relationships Involving Qualitative Variables*
    (1970), on raw as the uncertainty coefficient.
    """

    __slots__ = ()

    requires = UNDISTURBED | PATH

    spec = MetricSpec(
        name="step_predictability",
        title="Predictability of the next step",
        family="stability",
        direction="higher",
        low=-1.0,
        description=(
            "How much of the next step the current one determines, beyond chance: 0 nothing, "
            "1 all of it."
        ),
        formula=(
            "(raw − base) / (1 − base); raw = 1 − H(next | current) / H(next), base = mean "
            "raw of 20 random redraws"
        ),
        required_data="60 transitions, 1.5 steps a run, 2 different tools",
        source="Theil (1970)",
        improve=(
            "Say in the prompt which tool comes when, make tool descriptions distinct, or "
            "fix the order in code."
        ),
        emitted=False,
    )

    def value(self) -> Reading:
        paths = [row.path.names for row in self.rows() if row.path is not None]
        steps = Counter(chain.from_iterable(paths))
        taken = steps.total()
        if (
            len(steps) < 2
            or taken + len(paths) < MIN_TRANSITIONS
            or taken < MIN_MEAN_LENGTH * len(paths)
        ):
            return NO_DATA
        symbols = {name: at for at, name in enumerate(sorted(steps), 1)}
        raw = uncertainty_coefficient([[symbols[name] for name in path] for path in paths])
        base = _by_chance(
            sorted(map(len, paths)), sorted(symbols[name] for name in steps.elements())
        )
        return Reading(max((raw - base) / (1.0 - base), -1.0), len(paths))


def uncertainty_coefficient(runs: Iterable[Sequence[int]]) -> float:
    """Return 1 − H(next | current) / H(next) over the steps of runs, whose start and end are
    `BOUNDARY`.

    >>> uncertainty_coefficient([[1, 2], [1, 2]]), round(uncertainty_coefficient([[1], [1, 1]]), 2)
    (1.0, 0.43)
    """
    sequence = [BOUNDARY]
    for run in runs:
        sequence += run
        sequence.append(BOUNDARY)
    pairs = Counter(pairwise(sequence))
    currents = Counter(sequence[:-1])
    nexts = Counter(sequence[1:])
    joint, current, following = (
        _scaled_entropy(counts.values()) for counts in (pairs, currents, nexts)
    )
    return 1.0 - (joint - current) / following


def _scaled_entropy(counts: Iterable[int]) -> float:
    """Return n · H in bits."""
    listed = list(counts)
    total = sum(listed)
    return total * math.log2(total) - math.fsum([count * math.log2(count) for count in listed])


def _by_chance(lengths: Sequence[int], steps: Sequence[int]) -> float:
    """Return the mean coefficient of runs of these lengths whose steps are drawn from these."""
    source = random.Random(0)  # noqa: S311 - the same numbers for the same runs
    found: list[float] = []
    for _ in range(REDRAWS):
        drawn = iter(source.choices(steps, k=len(steps)))
        found.append(
            uncertainty_coefficient([[next(drawn) for _ in range(length)] for length in lengths])
        )
    return math.fsum(found) / REDRAWS
