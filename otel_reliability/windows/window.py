"""One window of one agent: which of its runs are in it, and the metrics about them."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, MutableSequence, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.metrics import SPECS, TABLE
from otel_reliability.metrics._support.latest_pairs import LatestPairs
from otel_reliability.metrics.base import DEFAULTS, Derived, Metric
from otel_reliability.metrics.numbers import Numbers
from otel_reliability.metrics.stability.path_similarity import PathSimilarity
from otel_reliability.metrics.stability.score import PartCost, Score
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row
from otel_reliability.model.run import Run
from otel_reliability.windows.input_groups import InputGroups
from otel_reliability.windows.rows import (
    DroppedRow,
    PathTable,
    RowsFrom,
    RowStore,
    Sought,
    end_in,
    order_of,
    row_of,
)

Attributes: TypeAlias = tuple[tuple[str, str], ...]
Series: TypeAlias = list[tuple[MetricSpec, Attributes, Reading]]

LABELLED: Final = frozenset(
    entry.spec.name for entry in TABLE if entry.series not in (Metric.series, Derived.series)
)
"""Names of the numbers that are emitted as several series; the series of the others is their
reading.
"""

EMITTED: Final = {spec.name: spec for spec in SPECS if spec.emitted}
"""The numbers that are live gauges, by name."""


class AgentWindow(Numbers):
    """The runs of an agent that are in one window now, and every number about them.

    The runs are the n with the greatest (end time, run id); with a period p, those of them in (T −
    p, T], T being the greatest end of the agent's runs. Time stands still while no run comes: the
    clock never empties a window.

    The window is the part of the sorted rows from `_start` on. Rows below are spares: they return
    when a run of the window is withdrawn. Only runs in `reopenable` can be withdrawn, so a spare
    is dropped once n final rows are above it or, with a period, once it ended at or before F − p, F
    being the latest end of a final run. Hence which rows count is a function of the rows, not of
    their order of arrival. Rows that the window keeps no more are appended to `dropped`.
    """

    __slots__ = (
        "_dropped",
        "_final_ns",
        "_forgotten",
        "_groups",
        "_kept",
        "_last",
        "_open",
        "_period_ns",
        "_reopenable",
        "_series",
        "_start",
        "name",
    )

    def __init__(
        self,
        window: WindowSettings,
        settings: Settings,
        reopenable: Container[str] = (),
        dropped: MutableSequence[DroppedRow] | None = None,
    ) -> None:
        super().__init__(settings)
        max_rows = settings.limits.rows
        self.name = window.name
        self._last = max_rows if window.last is None else min(window.last, max_rows)
        self._period_ns = None if window.period is None else round(window.period * 1e9)
        self._reopenable = reopenable
        self._dropped = deque[DroppedRow](maxlen=0) if dropped is None else dropped
        self._kept = RowStore()
        self._start = 0
        self._open = 0
        """Number of kept rows in `reopenable`."""
        self._forgotten = 0
        self._final_ns: int | None = None
        self._series: Series | None = None
        self._groups = InputGroups(self._kept)

    # --- Runs -------------------------------------------------------------------------------------

    @property
    def runs(self) -> int:
        """Number of runs in the window, under any condition."""
        return len(self._kept) - self._start

    @property
    def spares(self) -> int:
        """Number of runs kept below the window, in case one of it is withdrawn."""
        return self._start

    @property
    def newest_ns(self) -> int | None:
        """End of the last run; None without a run."""
        return self._kept.end_ns(len(self._kept) - 1) if len(self._kept) else None

    @property
    def left_out(self) -> int:
        """Number of runs that are not in the window because newer ones are, whether or not they
        ever were.
        """
        return self._start + self._forgotten

    def rows(self) -> list[Row]:
        """Return the rows in the window, by (end time, run id), with their input groups."""
        groups = self._input_groups()
        return [
            row if group is None else replace(row, group=group)
            for row, group in zip(self.plain_rows(), groups, strict=True)
        ]

    def _input_groups(self) -> Sequence[int | None]:
        """Return the input group of each row of the window; metrics learn of those that changed."""
        return self._groups.form(self._start, self._made.values())

    def plain_rows(self) -> list[Row]:
        """Return the rows in the window, without their groups."""
        return self._kept.rows(self._start)

    def _rows_when_asked(self) -> RowsFrom:
        """Return the rows in the window, without their groups, each read when it is asked for."""
        return RowsFrom(self._kept, self._start)

    def find(self, run_id: str, order: bytes | None = None) -> Row | None:
        """Return the row of a run of that order (None: whatever its end), in the window or a spare;
        None without one.
        """
        at = self._kept.find(run_id) if order is None else self._kept.index(order)
        return None if at is None else self._kept.row(at)

    def sought(self, sought: Sought) -> Iterator[Row]:
        """Yield the rows of these runs, traces, sessions and keys, in the window or spares."""
        return map(self._kept.row, self._kept.sought(sought))

    def keeps(self, order: bytes) -> bool:
        """Return whether the row of this order is kept, in the window or as a spare."""
        return self._kept.index(order) is not None

    # --- Changes ----------------------------------------------------------------------------------

    def insert(self, row: Row, order: bytes | None = None) -> bool:
        """Insert the row of a closed run; False: it sorts below all rows worth keeping, and was
        refused.

        `order` is its order, where that is known already.
        """
        at = self._kept.insert(row, order or order_of(row.end_ns, row.run_id))
        self._open += row.run_id in self._reopenable
        if at <= self._start:
            self._start += 1  # `_move` lets it enter if the window begins there
        else:
            self._enter(row, at)
        dropped = self._move()
        return at >= dropped  # rows are dropped from the first on

    def remove(self, order: bytes) -> None:
        """Remove the run of this order, which was withdrawn, or is about to be closed again; do
        nothing if it is not here.
        """
        at = self._kept.index(order)
        if at is None:
            return
        if at >= self._start:
            self._leave(at)
        else:
            self._start -= 1
        self._drop(at, 1)
        self._move()

    def finalize(self, order: bytes) -> None:
        """Note that the run of this order is final: it is no longer in `reopenable`."""
        if self._kept.index(order) is None:
            return
        self._open -= 1
        end_ns = end_in(order)
        self._final_ns = end_ns if self._final_ns is None else max(end_ns, self._final_ns)
        self._drop_spent()

    def _move(self) -> int:
        """Let rows leave or return until the window begins where it should; return the number of
        rows dropped.
        """
        kept = self._kept
        begin = self._begin()
        while self._start < begin:
            self._leave(self._start)
            self._start += 1
        while self._start > begin:
            self._start -= 1
            self._enter(kept.row(self._start), self._start)
        return self._drop_spent()

    def _enter(self, row: Row, at: int) -> None:
        """Count the row of this index in."""
        self._add(row)
        self._groups.enter(row, at - self._start)

    def _leave(self, at: int) -> None:
        """Count the row of this index out."""
        row = self._kept.row(at)
        self._evict(row)
        self._groups.leave(row, at - self._start)

    def _begin(self) -> int:
        """Return the index of the first row that should be in the window."""
        kept = self._kept
        begin = max(len(kept) - self._last, 0)
        if self._period_ns is None or not len(kept):
            return begin
        return max(begin, kept.after(kept.end_ns(len(kept) - 1) - self._period_ns))

    def _drop_spent(self) -> int:
        """Drop the spares that can never be in the window again; return their number."""
        spent = self._spent() if self._start else 0
        if spent:
            self._drop(0, spent)
            self._start -= spent
            self._forgotten += spent
        return spent

    def _spent(self) -> int:
        """Return the number of spares, from the first, that can never return: n final rows are
        above them or, with a period, they ended at or before `_final_ns` − period.
        """
        kept = self._kept
        most = self._last
        reopenable = self._reopenable
        period_ns = self._period_ns
        horizon = (
            None if period_ns is None or self._final_ns is None else self._final_ns - period_ns
        )
        final = len(kept) - self._open
        if final < most and horizon is None:
            return 0
        for at in range(self._start):
            final -= kept.run_id(at) not in reopenable
            if final < most and (horizon is None or kept.end_ns(at) > horizon):
                return at
        return self._start

    def _drop(self, first: int, number: int) -> None:
        kept = self._kept
        for at in range(first, first + number):
            self._open -= kept.run_id(at) in self._reopenable
            self._dropped.append(kept.dropped_row(at))
        kept.delete(first, number)

    # --- Numbers ----------------------------------------------------------------------------------

    def series(self) -> Series:
        """Return what is emitted: (spec, attributes, reading) of all that has a value."""
        if self._series is None:
            self._series = [
                (spec, attributes, reading)
                for name, spec in EMITTED.items()
                for attributes, reading in (
                    self._labelled(name) if name in LABELLED else (((), self.reading(name)),)
                )
                if reading.value is not None
            ]
        return self._series

    def path_distances(self, rows: Iterable[Row]) -> list[Reading]:
        """Return the mean distance of each of some runs to the other runs of its group in the
        window.
        """
        metric = cast("PathSimilarity", self.metric(PathSimilarity.spec.name))
        groups = self._input_groups()
        pairs: dict[int, LatestPairs[str]] = {}
        found: list[Reading] = []
        for row in rows:
            at = self._kept.index(order_of(row.end_ns, row.run_id))
            inside = at is not None and at >= self._start
            group = groups[at - self._start] if at is not None and inside else None
            if group is not None and group not in pairs:
                places = [place for place, one in enumerate(groups) if one == group]
                pairs[group] = metric.input_group(self._groups.group_at(places, self._start))
            formed = None if group is None else pairs[group]
            found.append(metric.distance(replace(row, group=None), formed, inside=inside))
        return found

    def penalties(self) -> dict[str, PartCost]:
        """Return the penalty of each part of the score that has data."""
        score = cast("Score", self.metric(Score.spec.name))
        return score.penalties({name: self.reading(name) for name in score.needs})

    def _count(self, row: Row, step: int) -> tuple[int, ...]:
        self._series = None
        return super()._count(row, step)

    def _make(self, at: int) -> Metric:
        metric = super()._make(at)
        metric.bind(self._rows_when_asked)
        return metric

    def _measure(self, at: int) -> None:
        self._input_groups()
        super()._measure(at)

    def _labelled(self, name: str) -> Iterable[tuple[Attributes, Reading]]:
        number = self.metric(name)
        if isinstance(number, Derived):
            return number.series(
                {name: self.reading(name) if name in EMITTED else NO_DATA for name in number.needs}
            )
        return () if number.of_outcomes and self.one_sided else number.series()


def measure(runs: Iterable[Run], settings: Settings = DEFAULTS) -> AgentWindow:
    """Return a window over plain runs, as one agent's; at most `limits.rows`, the newest. Nested
    runs count like others.

    For notebooks and test suites, without an engine.

    >>> from otel_reliability.model.run import Outcome
    >>> from otel_reliability.testing import run
    >>> outcomes = (Outcome.SUCCESS, Outcome.SUCCESS, Outcome.FAILURE)
    >>> window = measure(
    ...     run(["search"], n, task_id="refund", outcome=outcome)
    ...     for n, outcome in enumerate(outcomes)
    ... )
    >>> window.reading("outcome_agreement").value, window.reading("pass_hat_k").note
    (0.1111, 'k = 3')
    """
    paths = PathTable()
    window = AgentWindow(WindowSettings("all", last=settings.limits.rows), settings)
    for run in runs:
        window.insert(row_of(run, paths))
    return window
