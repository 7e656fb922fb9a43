"""Edit distances of sequences: Levenshtein's, over the longer length."""

from __future__ import annotations

from collections.abc import Sequence

from Levenshtein import distance as edit_distance

__all__ = ["edit_distance", "edit_share"]


def edit_share(left: Sequence[str], right: Sequence[str]) -> float:
    """Return the Levenshtein distance (insert, delete, replace at cost 1) over the longer length; 0 for two empty sequences.

    >>> edit_share(["a", "b"], ["a", "b", "c", "d"])
    0.5
    """
    longer = max(len(left), len(right))
    return edit_distance(left, right) / longer if longer else 0.0
