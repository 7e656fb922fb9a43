"""Groups of alike vectors, formed in one pass.

Each vector joins the group whose mean it is nearest to, if it is near enough, else it begins one.
What all vectors share is taken out before they are compared, as far as it is no more than what
different requests to one agent share: of the rest, which says what is special about each, the
cosine counts. Vectors of one kind keep part of what they share, so that they stay alike.

A group that is split loses runs to compare; two that are joined lose the truth. So the bound is
where groups are pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

NEAR: Final = 0.47
"""Cosine, to the mean of a group, from which a vector joins it."""
MAX_SHARED: Final = 0.7
"""Length of what is taken out at most, of vectors of length 1. Unlike requests of one domain share
up to 0.75, requests of one kind 0.8 and more."""
PRIOR: Final = 8
"""Vectors without anything in common that are counted to those given, so that what a few happen to
share is not all taken out.
"""
MAX_GROUPS: Final = 1_000
"""Groups that are formed; a vector that would begin another one joins the nearest."""


def groups_of(vectors: Sequence[bytes]) -> list[int]:
    """Return the number of the group of each vector (`packed`), from 0, in the order of their first
    members.

    A pure function of the vectors in their order. All have the same length.

    >>> one, other = bytes([0x8F, 0x88]), bytes([0xF8, 0x98])
    >>> groups_of([one, other, one, other, one])
    [0, 1, 0, 1, 0]
    """
    if len(vectors) < 2:
        return [0] * len(vectors)
    import numpy as np  # noqa: PLC0415  no window needs it before it has requests

    units = units_of(vectors)
    shared = units.sum(0) / (len(units) + PRIOR)
    length = float(np.linalg.norm(shared))
    units = _unit(units - shared * min(1.0, MAX_SHARED / max(length, 1e-6)))
    means = np.zeros((min(len(vectors), MAX_GROUPS), units.shape[1]), np.float32)
    lengths = np.ones(len(means), np.float32)
    found: list[int] = []
    formed = 0
    formed_means, formed_lengths = means[:0], lengths[:0]
    for unit in units:
        at = formed
        if formed:
            nearness = formed_means.dot(unit)
            nearness /= formed_lengths
            nearest = int(nearness.argmax())
            if nearness[nearest] >= NEAR or formed == len(means):
                at = nearest
        if at == formed:
            formed += 1
            formed_means, formed_lengths = means[:formed], lengths[:formed]
        mean = means[at]
        mean += unit
        lengths[at] = max(float(mean.dot(mean)) ** 0.5, 1e-6)
        found.append(at)
    return found


GREATEST: Final = 7
"""Greatest size of a number in four bits."""


def likeness(one: bytes, other: bytes) -> float:
    """Return the cosine of two vectors (`packed`), from -1 to 1; 0 where one has no length.

    >>> likeness(bytes([0x8F]), bytes([0x8F])), likeness(bytes([0x8F]), bytes([0xF8]))
    (1.0, 0.0)
    """
    first, second = units_of([one, other])
    return float(first.dot(second))


def packed(vectors: Any) -> Any:
    """Return vectors with whole numbers from -7 to 7 as bytes, two numbers in each."""
    numbers = (vectors + (GREATEST + 1)).astype("uint8")
    return numbers[..., ::2] | (numbers[..., 1::2] << 4)


def unpacked(vectors: Any) -> Any:
    """Return what `packed` was given.

    >>> import numpy as np
    >>> unpacked(packed(np.array([7, -7, 0, 1]))).tolist()
    [7.0, -7.0, 0.0, 1.0]
    """
    return _pairs().take(vectors).view("float32")


@cache
def _pairs() -> Any:
    """Return the two numbers that each byte holds, as single-precision numbers in one item of eight
    bytes: a look-up costs less than to take a byte apart.
    """
    import numpy as np  # noqa: PLC0415  see `groups_of`

    packs = np.arange(256)
    numbers = np.stack([packs & 15, packs >> 4], 1) - (GREATEST + 1)
    return numbers.astype("float32").view("uint64")


def _unit(vectors: Any) -> Any:
    """Return the vectors with length 1; those of length 0 as they are."""
    return vectors / _lengths(vectors)[:, None]


def _lengths(vectors: Any) -> Any:
    """Return the lengths of vectors, a little more than 0 so that one may divide by them."""
    import numpy as np  # noqa: PLC0415  see `groups_of`

    return np.maximum(np.sqrt((vectors * vectors).sum(1)), 1e-6)


SAME: Final = 0.6
"""Cosine, of what is special about each, from which a group is one that was known before."""


def mean_of(vectors: Sequence[bytes]) -> bytes:
    """Return the direction of the mean of some vectors, as one of them (`packed`).

    >>> mean_of([bytes([0x8F]), bytes([0x8F])]) == bytes([0x8F])
    True
    """
    return _direction(units_of(vectors).sum(0))


def _direction(vector: Any) -> bytes:
    """Return the direction of a vector, as one of those with whole numbers (`packed`)."""
    greatest = max(float(abs(vector).max()), 1e-6)
    found: bytes = packed((vector * (GREATEST / greatest)).round()).tobytes()
    return found


def matched(groups: Sequence[Sequence[bytes]], known: Sequence[bytes]) -> list[int | None]:
    """Return for each group of vectors the index of the mean (`mean_of`) of the same group; None
    where none of them is near enough. Each mean is that of one group at most; the nearest go first.

    What all vectors share is taken out: only what is special about each counts.
    """
    if not groups or not known:
        return [None] * len(groups)
    units = [units_of(vectors) for vectors in groups]
    shared = sum(each.sum(0) for each in units) / sum(map(len, units))
    means = [each.mean(0) for each in units]
    nearness = _unit(_stacked(means) - shared) @ _unit(units_of(known) - shared).T
    found: list[int | None] = [None] * len(groups)
    used: set[int] = set()
    pairs = [
        (-near, at, one) for at, row in enumerate(nearness.tolist()) for one, near in enumerate(row)
    ]
    for less, at, one in sorted(pairs):
        if -less >= SAME and found[at] is None and one not in used:
            found[at] = one
            used.add(one)
    return found


def units_of(vectors: Sequence[bytes]) -> Any:
    """Return vectors (`packed`) with length 1, as rows."""
    import numpy as np  # noqa: PLC0415  see `groups_of`

    return _unit(unpacked(np.frombuffer(b"".join(vectors), np.uint8).reshape(len(vectors), -1)))


def _stacked(vectors: Sequence[Any]) -> Any:
    import numpy as np  # noqa: PLC0415  see `groups_of`

    return _unit(np.stack(vectors))


MAX_WEIGHT: Final = 8
"""Members that the mean of a growing group stands for at most."""


def nearest(units: Any, sizes: Sequence[int], near: float = NEAR) -> int | None:
    """Return the index of the group that a vector joins; None where none is near enough, as in
    `groups_of`. `units` are the vector and behind it the means of the groups (`joined_mean`), all
    with length 1; `sizes` are the numbers of members.
    """
    if not sizes:
        return None
    import numpy as np  # noqa: PLC0415  see `groups_of`

    members = sum(sizes) + PRIOR
    shared = np.array(sizes, np.float32).dot(units[1:])
    length = float(shared.dot(shared)) ** 0.5 / members
    shared *= min(1.0, MAX_SHARED / max(length, 1e-6)) / members
    special = units - shared
    nearness = special.dot(special[0]) / _lengths(special)
    own = max(float(nearness[0]), 1e-6)
    """The vector's length: its product with itself by its length."""
    found = int(nearness[1:].argmax())
    return found if nearness[1 + found] >= near * own else None


def joined_mean(mean: Any, size: int, unit: Any) -> bytes:
    """Return the mean (`packed`) of a group of so many vectors, after one more joined it."""
    return _direction(mean * min(size, MAX_WEIGHT) + unit)


def directions_of(vectors: Sequence[bytes], number: int) -> list[bytes]:
    """Return the directions in which some vectors differ most (principal components), as vectors.
    There are at least as many vectors.
    """
    import numpy as np  # noqa: PLC0415  see `groups_of`

    units = units_of(vectors).astype(np.float64)  # in single precision machines would differ
    found = np.linalg.svd(units - units.mean(0), full_matrices=False)[2][:number]
    greatest = found[range(len(found)), abs(found).argmax(1), None]  # either sign is a solution
    return [packed((row * GREATEST).round()).tobytes() for row in found / greatest]
