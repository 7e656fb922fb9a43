"""graceful_degradation: do failures come early, or late?"""

from __future__ import annotations

from collections.abc import Sequence


def graceful_degradation(outcomes: Sequence[float]) -> int | None:
    """100 · Σ i·pass_i / Σ i over the positions i = 1 … N, rounded half away from zero; None without attempts.

    A late failure costs more than an early one: an agent that fails first and recovers is the more graceful. An outcome
    below 1 is a failure.

    >>> graceful_degradation([0, 1, 1, 1]), graceful_degradation([1, 1, 1, 0])
    (90, 60)
    """
    runs = len(outcomes)
    if not runs:
        return None
    total = runs * (runs + 1) // 2
    held = sum(position for position, outcome in enumerate(outcomes, 1) if outcome >= 1)
    return (200 * held + total) // (2 * total)
