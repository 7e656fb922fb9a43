"""An alarm: which numbers changed, since when, from what to what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Final, NamedTuple

from otel_reliability.change.points import ChangePoint
from otel_reliability.model.observation import Steps
from otel_reliability.statistics.hypergeometric import of_shares

MAX_TOOLS: Final = 3
"""Maximum number of tools that an alarm names."""
MIN_SHIFT: Final = 0.2
"""Minimum shift of the share of observations that use a tool, for an alarm to name it."""
LEVEL: Final = 0.01
"""p-value, over all tools, up to which an alarm names one. It keeps noise out, and promises
nothing: the alarm chose where to divide the observations.
"""


class Summary(NamedTuple):
    """The values of a signal on one side of a change."""

    observations: int
    mean: float
    median: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary | None:
        """Return the summary of some values, None of none."""
        return cls(len(values), fmean(values), median(values)) if values else None


class SignalChange(NamedTuple):
    """A signal in which the change shows. `since_observation` and `since_ns` estimate where it
    began: the observation from which the bet has only won. `before` and `after` summarize the kept
    values on either side of it.
    """

    signal: str
    evidence: float
    since_observation: int
    since_ns: int
    before: Summary | None
    after: Summary | None


class ToolShift(NamedTuple):
    """A tool that more, or fewer, of the observations use: shares of the reference and of the
    latest observations.
    """

    tool: str
    before: float
    after: float


class Alarm(NamedTuple):
    """The agent changed. `observation` counts from the first one ever; the first of `signals` names
    the change. `points` are the change points since the alarm before.
    """

    observation: int
    observation_id: str
    noticed_ns: int
    signals: tuple[SignalChange, ...]
    tools: tuple[ToolShift, ...]
    points: tuple[ChangePoint, ...] = ()

    @property
    def signal(self) -> str:
        """The signal that names the change: the one with the most evidence."""
        return self.signals[0].signal

    @property
    def since_observation(self) -> int:
        """The place where the change probably began, by the signal that names it."""
        return self.signals[0].since_observation


def tool_shifts(
    before: Iterable[Steps | None], after: Iterable[Steps | None]
) -> tuple[ToolShift, ...]:
    """Return the tools whose use shifted most between two sets of paths, by more than chance over
    all tools; none where no path of a side is observable.

    >>> tool_shifts([("search",)] * 9, [("search", "refund")] * 5)
    (ToolShift(tool='refund', before=0.0, after=1.0),)
    >>> tool_shifts([("search",)] * 9, [("search", "refund")])
    ()
    """
    sides = [[set(path) for path in paths if path is not None] for paths in (before, after)]
    if not all(sides):
        return ()
    earlier, later = (Counter(tool for tools in side for tool in tools) for side in sides)
    runs = [len(side) for side in sides]
    tools = earlier.keys() | later.keys()
    shifts: list[ToolShift] = []
    for tool in tools:
        shift = ToolShift(tool, earlier[tool] / runs[0], later[tool] / runs[1])
        if abs(shift.after - shift.before) >= MIN_SHIFT:
            p = of_shares((earlier[tool], runs[0]), (later[tool], runs[1]))
            if p * len(tools) <= LEVEL:
                shifts.append(shift)
    shifts.sort(key=lambda shift: (-abs(shift.after - shift.before), shift.tool))
    return tuple(shifts[:MAX_TOOLS])
