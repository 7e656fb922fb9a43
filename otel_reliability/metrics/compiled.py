"""The distances of paths by the compiled module, where it is installed (`otel-reliability-native`); otherwise by `later_sums`,
which tests compare it with.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from rapidfuzz.distance.Levenshtein import distance

from otel_reliability.metrics.apart import edit_column
from otel_reliability.metrics.later_sums import LaterSums

MODULE: Final = "otel_reliability_native_paths"
PathSums: TypeAlias = Callable[[Mapping[str, int]], LaterSums[str]]


def load() -> Any:
    """The compiled module, None where it is not installed or cannot be loaded."""
    try:
        return importlib.import_module(MODULE)
    except ImportError:
        return None


NATIVE: Final = load()
path_sums: Final[PathSums] = (
    partial(LaterSums[str], edit_column) if NATIVE is None else partial(NATIVE.PathSums, distance)
)
"""Makes the sums of many different paths, of which so many runs are there."""
