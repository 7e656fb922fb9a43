"""The distances of paths by the compiled module, where it is installed (`otel-reliability-native`); otherwise by `later_sums`,
which tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from rapidfuzz.distance.Levenshtein import distance

from otel_reliability import native
from otel_reliability.metrics.apart import edit_column, edit_shares, total
from otel_reliability.metrics.later_sums import LaterSums
from otel_reliability.model.row import Path

MODULE: Final = "otel_reliability_native_paths"
BITS: Final = {chr(0x21 + at): 1 << at for at in range(60)}
"""What those characters that tools get first are in a set of tools: numbers are compared quickly."""
PathSums: TypeAlias = Callable[[Mapping[str, int]], LaterSums[str]]
PathTotal: TypeAlias = Callable[[Mapping[str, int]], int]
CountAll: TypeAlias = Callable[[dict[Any, int], dict[int, int], list[Any], list[int]], None]
ToolSet: TypeAlias = int | str | tuple[str, ...]
CountCalls: TypeAlias = Callable[[dict[str, tuple[int, int]], list[Any], list[int]], bool]


def load() -> Any:
    """The compiled module, None where it is not installed or does not fit."""
    return native.load(MODULE)


def sorted_tools(code: str) -> str:
    """The different characters of a path's code, sorted.

    >>> sorted_tools("bab")
    'ab'
    """
    return "".join(sorted(set(code)))


def tool_set(code: str) -> ToolSet:
    """The different characters of a path's code: bits of a number; sorted where one has no bit.

    >>> tool_set('"!"'), tool_set("ba~")
    (3, 'ab~')
    """
    try:
        return sum([BITS[symbol] for symbol in set(code)])
    except KeyError:
        return sorted_tools(code)


def tool_sets(paths: list[Path]) -> list[ToolSet]:
    """The different steps of each path: as `tool_set`; sorted where tools share a character.

    >>> tool_sets([Path('"!"', {"!": "search", '"': "read"}), Path("aa", ("search", "read"))])
    [3, ('a',)]
    """
    told = steps_in(paths)
    return [tool_set(steps) if isinstance(steps, str) else tuple(sorted(set(steps))) for steps in told]


def steps_in(paths: list[Path]) -> list[Sequence[str]]:
    """The steps of each path."""
    return [path.steps for path in paths]


def codes_in(paths: list[Path]) -> list[str]:
    """The code of each path."""
    return [path.code for path in paths]


NATIVE: Final = load()
SPELLED: Final = None if NATIVE is None else NATIVE.Spelled(Path)
path_sums: Final[PathSums] = (
    partial(LaterSums[str], edit_column) if NATIVE is None else partial(NATIVE.PathSums, distance)
)
"""Makes the sums of many different paths, of which so many runs are there."""
path_total: Final[PathTotal] = partial(total, edit_shares) if NATIVE is None else partial(NATIVE.apart, distance)
"""The sum of the distances over all pairs of runs, of which so many took each path."""
tools_of: Final[Callable[[str], str]] = sorted_tools if NATIVE is None else NATIVE.tools
"""The same as `sorted_tools`."""
sets_of: Final[Callable[[list[Path]], list[ToolSet]]] = tool_sets if SPELLED is None else SPELLED.sets
"""The same as `tool_sets`."""
steps_of: Final[Callable[[list[Path]], list[Sequence[str]]]] = steps_in if SPELLED is None else SPELLED.steps
"""The same as `steps_in`."""
codes_of: Final[Callable[[list[Path]], list[str]]] = codes_in if SPELLED is None else SPELLED.codes
"""The same as `codes_in`."""
count_all: Final[CountAll | None] = None if NATIVE is None else NATIVE.count_all
"""What `Multiset.count_all` does with what it counts; None: it is not installed."""
count_calls: Final[CountCalls | None] = None if NATIVE is None else NATIVE.count_calls
"""What `CallCounts.count_all` does with its sums; None: it is not installed. False: nothing was done."""
