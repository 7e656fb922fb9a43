"""context_growth: how fast does a conversation fill the context window, and when will
it be full?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import PRESSURE, UNDISTURBED, WindowMetric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row

MIN_TURNS: Final = 3
"""Turns of a session, and model calls of a run, from which a trend is computed."""
TOLERANCE: Final = 1e-9


class Growth(NamedTuple):
    """A session's trend: its turns, the share of the context window that the last one filled, the
    rise a turn, the turn that reaches the limit at this rate (None: it does not grow).
    """

    session_id: str
    turns: int
    filled: float
    slope: float
    full_at: int | None

    @property
    def turns_left(self) -> int | None:
        """Turns until the context window is full; 0: it is full."""
        return None if self.full_at is None else max(self.full_at - self.turns, 0)


class ContextGrowth(WindowMetric):
    """The mean over sessions of the rise of token budget pressure from turn to turn: the slope of
    the least-squares line.

    A turn is a run of the window. Next to it: the least number of turns until the context window of
    a session is full at its rate (at most 3 set the flag `context_growth`), and the mean rise from
    one model call of a run to the next.

    A chat that grows by 15,000 tokens a turn, with a limit of 128,000:

    >>> from otel_reliability.testing import row
    >>> growth = ContextGrowth()
    >>> for tokens in range(20_000, 110_001, 15_000):
    ...     growth.add(row(session_id="chat", pressure=tokens / 128_000))
    >>> print(f"{growth.value().value:.3f} a turn;", growth.value().note)
    0.117 a turn; at this rate full at turn 9
    >>> growth.companion_values()[0].value
    2.0
    """

    __slots__ = ()

    requires = UNDISTURBED | PRESSURE

    spec = MetricSpec(
        name="context_growth",
        title="Context growth per turn",
        family="stability",
        low=-1.0,
        direction="lower",
        description=(
            "How much more of the context window each turn of a conversation fills than the "
            "turn before."
        ),
        formula="mean over sessions of the least-squares slope of pressure over turns",
        required_data="a session of 3 runs with tokens and a known context limit",
        source="this project",
        improve="Summarize or drop old turns and tool results before the context window is full.",
        emitted=False,
    )
    companions = (
        spec._replace(
            name="context_turns_left",
            title="Turns until the context is full",
            unit="{turn}",
            low=0.0,
            high=None,
            direction="higher",
            description=(
                "After how many more turns the first session's context window is full, at "
                "its present rate."
            ),
            formula=(
                "min over growing sessions of ⌈turn at which the line reaches 1⌉ − turns so far"
            ),
            required_data="a session of 3 runs whose pressure grows",
            improve="As for context growth per turn.",
        ),
        spec._replace(
            name="context_growth_per_step",
            title="Context growth per model call",
            description=(
                "How much more of the context window each model call of a run fills than the "
                "call before."
            ),
            formula="mean over runs of the least-squares slope of pressure over model calls",
            required_data="a run of 3 model calls with tokens and a known context limit",
            improve="Shorten tool results before they go to the model.",
        ),
    )

    def value(self) -> Reading:
        found = growths(self.rows())
        if not found:
            return NO_DATA
        soonest = found[0]
        note = "" if soonest.full_at is None else f"at this rate full at turn {soonest.full_at}"
        return Reading(
            clamp(fmean(one.slope for one in found), -1.0),
            sum(one.turns for one in found),
            note=note,
        )

    def companion_values(self) -> tuple[Reading, ...]:
        rows = self.rows()
        soonest = next(iter(growths(rows)), None)
        left = NO_DATA
        if soonest is not None and soonest.turns_left is not None:
            left = Reading(float(soonest.turns_left), soonest.turns)
        slopes = [row.step_growth for row in rows if row.step_growth is not None]
        return left, Reading(clamp(fmean(slopes), -1.0), len(slopes)) if slopes else NO_DATA


def growths(rows: Iterable[Row]) -> list[Growth]:
    """Return the trend of every session of at least 3 turns with known pressure, the one that is
    full soonest first.
    """
    sessions: dict[str, list[Row]] = {}
    for row in rows:
        if row.session_id is not None and row.pressure is not None and row.undisturbed:
            sessions.setdefault(row.session_id, []).append(row)
    found = [
        _growth(session, turns) for session, turns in sessions.items() if len(turns) >= MIN_TURNS
    ]
    return sorted(found, key=_soonest)


def _growth(session: str, turns: list[Row]) -> Growth:
    turns.sort(key=lambda row: (row.start_ns, row.run_id))
    filled = [row.pressure or 0.0 for row in turns]
    slope = slope_of(filled) or 0.0
    full_at = None
    if filled[-1] >= 1.0:
        full_at = next(at for at, share in enumerate(filled, 1) if share >= 1.0)
    elif slope > TOLERANCE:
        middle = (len(filled) + 1) / 2
        full_at = max(math.ceil(middle + (1.0 - fmean(filled)) / slope - TOLERANCE), len(turns) + 1)
    return Growth(session, len(turns), filled[-1], slope, full_at)


def _soonest(growth: Growth) -> tuple[float, float, str]:
    left = growth.turns_left
    return math.inf if left is None else left, -growth.filled, growth.session_id


def slope_of(values: Sequence[float]) -> float | None:
    """Return the slope of the least-squares line through equally spaced values; None below 3 of
    them.

    In half the time of `statistics.linear_regression`, to the last bit: every run that enters a
    window needs it.

    >>> slope_of([0.25, 0.5, 0.75]), slope_of([1.0, 2.0])
    (0.25, None)
    """
    n = len(values)
    if n < MIN_TURNS:
        return None
    middle = (n - 1) / 2
    mean = math.fsum(values) / n
    return math.fsum([(at - middle) * (value - mean) for at, value in enumerate(values)]) / (
        n * (n * n - 1) / 12
    )
