"""Levenshtein distances of sequences: insert, delete and replace cost 1.

The package that computes them is imported by the first call: attaching to an agent does not need
it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import repeat


def coded(path: Iterable[str], codes: dict[str, str]) -> str:
    """Return a path with one character a tool; tools that are not in `codes` yet get the next ones.

    >>> coded(["search", "book", "search"], {"book": "b", "search": "s"})
    'sbs'
    """
    return "".join(
        [codes.get(tool) or codes.setdefault(tool, chr(len(codes) + 1)) for tool in path]
    )


def edit_distances(one: Sequence[str], others: Collection[Sequence[str]]) -> list[int]:
    """Return the edit distance of a sequence to each other.

    >>> edit_distances("ab", ["ab", "abcd", ""])
    [0, 2, 2]
    """
    from Levenshtein import distance  # noqa: PLC0415

    return list(map(distance, repeat(one), others))


def edit_shares(one: Sequence[str], others: Collection[Sequence[str]]) -> list[float]:
    """Return the edit distances over the longer length of the two; 0 for two empty sequences.

    >>> edit_shares(["a", "b"], [["a", "b", "c", "d"], []])
    [0.5, 1.0]
    """
    length = len(one)
    return [
        edits / (max(length, len(other)) or 1)
        for edits, other in zip(edit_distances(one, others), others, strict=True)
    ]
