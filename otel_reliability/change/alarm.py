"""An alarm: which numbers changed, since when, from what to what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Any, Final, NamedTuple

from otel_reliability.change.units import Steps

TOLD_TOOLS: Final = 3
LEAST_SHIFT: Final = 0.2
"""Shift of the share of units that use a tool, from which it is told."""


class Summary(NamedTuple):
    """The values of a signal on one side of a change."""

    units: int
    mean: float
    median: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary | None:
        """The summary of some values, None of none."""
        return cls(len(values), fmean(values), median(values)) if values else None


class Told(NamedTuple):
    """A signal in which the change shows. `since_unit` and `since_ns` estimate where it began: the unit from which the bet
    has only won. `before` and `after` are the kept values on either side of it.
    """

    signal: str
    evidence: float
    since_unit: int
    since_ns: int
    before: Summary | None
    after: Summary | None


class ToolShift(NamedTuple):
    """A tool that more, or fewer, of the units use: shares of the reference and of the latest units."""

    tool: str
    before: float
    after: float


class Alarm(NamedTuple):
    """The agent changed. `unit` counts its units from the first ever seen; the first of `told` names the change."""

    unit: int
    unit_id: str
    noticed_ns: int
    told: tuple[Told, ...]
    tools: tuple[ToolShift, ...]

    @property
    def signal(self) -> str:
        """The signal that names the change: the one with the most evidence."""
        return self.told[0].signal

    @property
    def since_unit(self) -> int:
        """Where the change probably began, by the signal that names it."""
        return self.told[0].since_unit

    def to_state(self) -> list[Any]:
        """The alarm in plain values."""
        told = [[*one[:-2], _listed(one.before), _listed(one.after)] for one in self.told]
        return [self.unit, self.unit_id, self.noticed_ns, told, [list(shift) for shift in self.tools]]

    @classmethod
    def from_state(cls, state: Sequence[Any]) -> Alarm:
        """What `to_state` wrote."""
        unit, unit_id, noticed_ns, told, tools = state
        read = (Told(a, b, c, d, _summary(e), _summary(f)) for a, b, c, d, e, f in told)
        return cls(unit, unit_id, noticed_ns, tuple(read), tuple(ToolShift(*shift) for shift in tools))


def tool_shifts(before: Iterable[Steps | None], after: Iterable[Steps | None]) -> tuple[ToolShift, ...]:
    """The tools whose use shifted most between two sets of paths.

    >>> tool_shifts([("search",), ("search", "book")], [("search", "refund")])
    (ToolShift(tool='refund', before=0.0, after=1.0), ToolShift(tool='book', before=0.5, after=0.0))
    """
    earlier, later = _shares(before), _shares(after)
    if not earlier or not later:
        return ()
    shifts = [ToolShift(tool, earlier.get(tool, 0.0), later.get(tool, 0.0)) for tool in earlier.keys() | later.keys()]
    large = [shift for shift in shifts if abs(shift.after - shift.before) >= LEAST_SHIFT and shift.tool]
    large.sort(key=lambda shift: (-abs(shift.after - shift.before), shift.tool))
    return tuple(large[:TOLD_TOOLS])


def _shares(paths: Iterable[Steps | None]) -> dict[str, float]:
    """Per tool, the share of the observable paths that use it; `""` stands for all of them, so that none differs from no
    tools.
    """
    sets = [set(path) for path in paths if path is not None]
    used = Counter(tool for tools in sets for tool in tools)
    return {tool: count / len(sets) for tool, count in used.items()} | ({"": 1.0} if sets else {})


def _listed(summary: Summary | None) -> list[float] | None:
    return None if summary is None else list(summary)


def _summary(state: Sequence[Any] | None) -> Summary | None:
    return None if state is None else Summary(*state)
