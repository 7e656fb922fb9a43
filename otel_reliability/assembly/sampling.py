"""Weight of a sampled run."""

from __future__ import annotations

from typing import Final

from otel_reliability.model.blake2 import blake2b

_ALL: Final = 1 << 56
_MAX_WEIGHT: Final = 1 << 40


def sampling_weight(threshold: int | None, trace_id: bytes) -> int:
    """2^56 / (2^56 − T), rounded up or down by a hash of the trace id: whole, and right on average.

    >>> (
    ...     sampling_weight(None, b""),
    ...     sampling_weight(1 << 55, bytes(16)),
    ...     sampling_weight(0, bytes(16)),
    ... )
    (1, 2, 1)
    """
    if not threshold:
        return 1
    kept = _ALL - threshold
    if kept <= 0:
        return 1
    whole, rest = divmod(_ALL, kept)
    if rest:
        lot = int.from_bytes(blake2b(trace_id, digest_size=7).digest(), "big")
        whole += lot * kept < rest * _ALL
    return min(whole, _MAX_WEIGHT)
