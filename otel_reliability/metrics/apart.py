"""How far apart two paths are: one by one, and one from very many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance.Levenshtein import distance
from rapidfuzz.process import cdist

ONE_BITS: Final = 52
ONE: Final = 1 << ONE_BITS
"""Distances are whole numbers of 2^-52, so that sums of them are exact and can be undone."""

K = TypeVar("K")

Apart: TypeAlias = Callable[[K, Sequence[K]], list[int]]
"""How far what a run did is from what each other did, in units of 2^-52; the same seen from either side."""

Shares: TypeAlias = Callable[[str, Sequence[str]], list[int]]
"""The same of paths, by their codes."""

Integers: TypeAlias = NDArray[np.int64]

Column: TypeAlias = Callable[[K, list[K], Integers], Integers]
"""The same as one column of numbers; the lengths of the others are known."""

FEW: Final = 17
"""Below so many paths, distances that are remembered are faster than one call for all."""

REMEMBERED: Final = 256
"""Steps of a path up to which its distances are remembered: others would be kept alive by it."""

LONGEST: Final = 1 << (63 - ONE_BITS)
"""From so many steps on, a number of 64 bits does not hold the edits in units."""


def edit_shares(code: str, others: Sequence[str]) -> list[int]:
    """The edit distance of a path to each other over the longer length of the two, in units of 2^-52.

    Insert, delete and replace cost 1; two empty paths are equal.

    >>> [share / ONE for share in edit_shares("ab", ["ab", "abcd", ""])]
    [0.0, 0.5, 1.0]
    """
    if len(others) < FEW and len(code) <= REMEMBERED:
        return [_edit_share(code, other) if len(other) <= REMEMBERED else _share(code, other) for other in others]
    length, edits = len(code) or 1, cdist((code,), others, scorer=distance)[0].tolist()
    return [many * ONE // max(length, len(other)) for many, other in zip(edits, others, strict=True)]


def edit_column(code: str, others: list[str], lengths: Integers) -> Integers:
    """The same at once, of many.

    >>> (edit_column("ab", ["ab", "abcd", ""], np.array([2, 4, 0])) / ONE).tolist()
    [0.0, 0.5, 1.0]
    """
    longer = np.maximum(lengths, len(code) or 1)
    if int(longer.max(initial=0)) >= LONGEST:
        return np.array(edit_shares(code, others), np.int64)
    edits = cdist((code,), others, scorer=distance, dtype=np.int64)[0]
    return (edits << ONE_BITS) // longer


def column_of(shares: Apart[K]) -> Column[K]:
    """Any other distance as a column."""
    return lambda one, others, lengths: np.array(shares(one, others), np.int64)


def total(shares: Apart[K], counts: Mapping[K, int]) -> int:
    """The sum of the distances over all pairs of runs, of which so many did each thing, in units of 2^-52.

    >>> total(edit_shares, {"ab": 2, "abcd": 3}) / ONE
    3.0
    """
    codes, runs = list(counts), list(counts.values())
    found = 0
    for at in range(1, len(codes)):
        apart = shares(codes[at], codes[:at])
        found += runs[at] * sum([share * many for share, many in zip(apart, runs, strict=False)])
    return found


@lru_cache(maxsize=16_384)
def _edit_share(code: str, other: str) -> int:
    """The same of two. Agents that keep to few paths are asked for few, often."""
    return _share(code, other)


def _share(code: str, other: str) -> int:
    return distance(code, other) * ONE // max(len(code), len(other), 1)
