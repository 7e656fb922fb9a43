"""What people do instead: an alarm when the mix of tools has moved by more than a fixed amount."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from otel_reliability.model.observation import Observation
from tests.change.simulate import Floats, Ints

WINDOW: Final = 40
THRESHOLD: Final = 0.1


def tool_counts(observations: Sequence[Observation]) -> Floats:
    tools = sorted({tool for one in observations for tool in one.path or ()})
    return np.array(
        [[(one.path or ()).count(tool) for tool in tools] for one in observations], dtype=np.float64
    )


def divergence(one: Floats, other: Floats) -> Floats:
    """Jensen and Shannon's divergence (bits) of rows of counts; no calls at all are
    like any mix.
    """

    def shares(counts: Floats) -> Floats:
        return counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)

    def entropy(p: Floats) -> Floats:
        return -(p * np.log2(np.where(p > 0, p, 1))).sum(axis=-1)

    p = shares(one)
    q = shares(other)
    return entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2


def mix_alarms(counts: Floats, rows: Ints, threshold: float) -> Ints:
    """Per stream (a row of pool rows), the first observation at which the mix of the last 40 is not
    the first mix; 0: none.
    """
    sums = np.cumsum(counts[rows], axis=1)
    latest = sums[:, 2 * WINDOW - 1 :] - sums[:, WINDOW - 1 : -WINDOW]
    reference = np.broadcast_to(sums[:, WINDOW - 1][:, None, :], latest.shape)
    over = divergence(latest, reference) > threshold
    return np.where(over.any(axis=1), over.argmax(axis=1) + 2 * WINDOW, 0)


def mix_found(
    observations: Sequence[Observation], before: Ints, after: Ints, *, streams: int, seed: int
) -> tuple[float, float]:
    """(share of the streams with an alarm before the change, share of the others in which it is
    found within 100).
    """
    rng = np.random.default_rng(seed)
    rows = np.concatenate(
        [rng.choice(before, (streams, 200)), rng.choice(after, (streams, 100))], axis=1
    )
    alarms = mix_alarms(tool_counts(observations), rows, THRESHOLD)
    early = (alarms > 0) & (alarms <= 200)
    return float(early.mean()), float((alarms[~early] > 200).mean()) if not early.all() else float(
        "nan"
    )
