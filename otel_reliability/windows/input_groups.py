"""Input groups of a window: its runs without a task id, by what they were asked.

Theory of operation
-------------------
**A group** is the runs of one window whose requests are alike (`statistics.likeness`). A run of a
task is compared within its task, and one without a request with those whose input is unknown
either: both are in no input group. Which group a run is in depends on all requests of the window,
so that groups are formed when something is read, all at once, and not as rows pass.

    row enters   no group until groups are formed again
    row leaves   its place is taken out; it is kept aside with the group that it left (`_left`)
    read         if a row with a request entered or left since (`_stale`): form groups again

**Metrics** hold sums over groups, and no group. A group that changed is replaced: the metric takes
away what it gave (its members, among them those that left since) and adds what it gives now. Of a
hundred runs one more changes few groups. Where most changed, or more than `MAX_LEFT` rows left,
metrics begin again with all groups, which costs less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.metrics.base import InputGroup, Metric, RunKind, data_of
from otel_reliability.model.row import Row
from otel_reliability.statistics.likeness import groups_of
from otel_reliability.windows.rows import RowStore

MAX_LEFT: Final = 8
"""Rows that left groups, kept aside until groups are formed again."""

Places: TypeAlias = tuple[int, ...]
"""Places in the window, 0 being that of its first row."""


class Changes(NamedTuple):
    """The groups that are no more, and those in their place."""

    left: list[InputGroup] | None
    """None: all that there were."""
    entered: list[InputGroup]


class InputGroups:
    """The input group of each row of a window.

    `rows` are those of the window and spares below it; the window says where it begins.
    """

    __slots__ = ("_formed", "_left", "_rows", "_stale")

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._formed: list[int | None] | None = None
        """The group of each row of the window, as last formed; None for a row without a request,
        and one that entered since. None: no row had a request, or too many rows left since.
        """
        self._left: list[tuple[int, Row]] = []
        """The rows that left groups since these were formed, each with its group."""
        self._stale = False
        """True if rows with a request entered or left since."""

    def enter(self, row: Row, place: int) -> None:
        """Let a row enter the window at this place."""
        if self._formed is not None:
            self._formed.insert(place, None)
        if row.request is not None:
            self._stale = True

    def leave(self, row: Row, place: int) -> None:
        """Let the row of this place leave the window."""
        if row.request is not None:
            self._stale = True
        group = None if self._formed is None else self._formed.pop(place)
        if group is not None:
            self._left.append((group, row))
            if len(self._left) > MAX_LEFT:
                self._formed = None
                self._left = []

    def form(self, start: int, metrics: Iterable[Metric]) -> list[int | None]:
        """Return the group of each row from index `start` on, where the window begins: a pure
        function of the rows, in their order. None for a row of a task, and one of unknown input.

        `metrics` learn of groups that changed.
        """
        if self._stale:
            requests = [self._rows.request(at) for at in range(start, len(self._rows))]
            numbers = iter(groups_of([request for request in requests if request is not None]))
            formed = [None if request is None else next(numbers) for request in requests]
            changes = self._changes(_members(formed), start)
            for metric in metrics:
                metric.regroup(changes.left, changes.entered)
            self._formed = None if formed.count(None) == len(formed) else formed
            self._left = []
            self._stale = False
        return [None] * (len(self._rows) - start) if self._formed is None else self._formed

    def group_at(self, places: Iterable[int], start: int, left: Sequence[Row] = ()) -> InputGroup:
        """Return the group of the rows in these places of the window, and of some that left it."""
        at = [start + place for place in places]
        kinds = self._rows.kinds(at)
        kinds += [RunKind(row, 1, data_of(row)) for row in left]
        return InputGroup(kinds, lambda: [*map(self._rows.row, at), *left])

    def _changes(self, after: dict[int, Places], start: int) -> Changes:
        """Return what changes if groups have these members. The same members may be another number
        than before: groups are numbered as they are formed.
        """
        if self._formed is None:
            return self._all(after, start)
        before = _members(self._formed)
        gone: dict[int, list[Row]] = {}
        for group, row in self._left:
            gone.setdefault(group, []).append(row)
        same = {places for group, places in before.items() if group not in gone}
        same.intersection_update(after.values())
        changed = [group for group in before.keys() | gone.keys() if before.get(group) not in same]
        if sum(len(before.get(group, ())) for group in changed) > sum(map(len, same)):
            return self._all(after, start)
        return Changes(
            [self.group_at(before.get(group, ()), start, gone.get(group, ())) for group in changed],
            [self.group_at(places, start) for places in after.values() if places not in same],
        )

    def _all(self, after: dict[int, Places], start: int) -> Changes:
        return Changes(None, [self.group_at(places, start) for places in after.values()])


def _members(groups: Sequence[int | None]) -> dict[int, Places]:
    """Return the places of the members of each group."""
    found: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        if group is not None:
            found.setdefault(group, []).append(place)
    return {group: tuple(places) for group, places in found.items()}
