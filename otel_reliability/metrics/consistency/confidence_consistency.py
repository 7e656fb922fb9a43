"""confidence_consistency (C_conf): is the agent equally sure of itself in each attempt at a task?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from otel_reliability.metrics.consistency.spread import variation
from otel_reliability.metrics.means import mean_of_present, present


def steadiness(variation: float | None) -> float | None:
    """exp(−CV): 1 for no variation, towards 0 as it grows; None for None.

    >>> steadiness(0.0), steadiness(None)
    (1.0, None)
    """
    return None if variation is None else math.exp(-variation)


def confidence_consistency(tasks: Iterable[Sequence[float | None]]) -> float | None:
    """C_conf: exp(−s / mean) of the confidences of a task's attempts, s with K − 1, then the mean over tasks.

    All attempts count, whatever their outcome; those without a confidence are left out. A task needs 2 confidences and a
    mean above 0. It is no part of `consistency`.

    >>> round(confidence_consistency([[0.8, 0.8, 0.8], [0.5, 1.0, None]]), 4)
    0.8121
    """
    return mean_of_present(steadiness(variation(present(confidences))) for confidences in tasks)
