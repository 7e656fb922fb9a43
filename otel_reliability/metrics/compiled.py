"""The distances of paths by the compiled module, where it is installed (`otel-reliability-native`); otherwise by `later_sums`,
which tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from rapidfuzz.distance.Levenshtein import distance

from otel_reliability import native
from otel_reliability.metrics.apart import edit_column, edit_shares, total
from otel_reliability.metrics.later_sums import LaterSums

MODULE: Final = "otel_reliability_native_paths"
PathSums: TypeAlias = Callable[[Mapping[str, int]], LaterSums[str]]
PathTotal: TypeAlias = Callable[[Mapping[str, int]], int]


def load() -> Any:
    """The compiled module, None where it is not installed or does not fit."""
    return native.load(MODULE)


def sorted_tools(code: str) -> str:
    """The different characters of a path's code, sorted.

    >>> sorted_tools("bab")
    'ab'
    """
    return "".join(sorted(set(code)))


NATIVE: Final = load()
path_sums: Final[PathSums] = (
    partial(LaterSums[str], edit_column) if NATIVE is None else partial(NATIVE.PathSums, distance)
)
"""Makes the sums of many different paths, of which so many runs are there."""
path_total: Final[PathTotal] = partial(total, edit_shares) if NATIVE is None else partial(NATIVE.apart, distance)
"""The sum of the distances over all pairs of runs, of which so many took each path."""
tools_of: Final[Callable[[str], str]] = sorted_tools if NATIVE is None else NATIVE.tools
"""The same as `sorted_tools`."""
