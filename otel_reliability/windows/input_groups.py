"""Input groups of a window: its runs without a task id, by what they were asked.

Theory of operation
-------------------
**A group** is the runs of one window whose requests are alike (`statistics.likeness`). A run of a
task is compared within its task, and one without a request with those whose input is unknown
either: both are in no input group. Which group a run is in depends on all requests of the window,
so that groups are formed when something is read, all at once, and not as rows pass.

    row enters   no group until groups are formed again
    row leaves   its place is taken out, and the group that it left has changed
    read         if a row with a request entered or left since (`_stale`): form groups again

**Metrics** hold what each group contributes, and no group. Of a hundred runs one more changes few
groups, and they are told of those alone, by numbers that a group keeps while its runs are the same:
the order in which groups are formed, by which readers know them, is another after each run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from otel_reliability.metrics.base import InputGroup, Metric
from otel_reliability.model.row import Row
from otel_reliability.statistics.likeness import groups_of
from otel_reliability.windows.rows import RowStore

Places: TypeAlias = tuple[int, ...]
"""Places in the window, 0 being that of its first row."""


class InputGroups:
    """The input group of each row of a window.

    `rows` are those of the window and spares below it; the window says where it begins.
    """

    __slots__ = ("_formed", "_left", "_numbers", "_rows", "_stale")

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._formed: list[int | None] | None = None
        """The group of each row of the window, as last formed; None for a row without a request,
        and one that entered since. None: no row had a request.
        """
        self._left: set[int] = set()
        """The groups that a row left since they were formed."""
        self._numbers: list[int] = []
        """The number by which metrics know each group."""
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
            self._left.add(group)

    def form(self, start: int, metrics: Iterable[Metric]) -> list[int | None]:
        """Return the group of each row from index `start` on, where the window begins: a pure
        function of the rows, in their order. None for a row of a task, and one of unknown input.

        `metrics` learn of groups that changed.
        """
        if self._stale:
            requests = [self._rows.request(at) for at in range(start, len(self._rows))]
            numbers = iter(groups_of([request for request in requests if request is not None]))
            formed = [None if request is None else next(numbers) for request in requests]
            changed = self._changes(formed, start)
            for metric in metrics:
                metric.regroup(changed)
            self._formed = None if formed.count(None) == len(formed) else formed
            self._left = set()
            self._stale = False
        return [None] * (len(self._rows) - start) if self._formed is None else self._formed

    def group_at(self, places: Iterable[int], start: int) -> InputGroup:
        """Return the group of the rows in these places of the window."""
        at = [start + place for place in places]
        return InputGroup(self._rows.kinds(at), lambda: [*map(self._rows.row, at)])

    def _changes(self, formed: Sequence[int | None], start: int) -> dict[int, InputGroup | None]:
        """Return the groups that are not as before, by the number by which metrics know each, and
        give these numbers anew: a group of the same runs keeps its own.
        """
        known = {
            places: self._numbers[group]
            for group, places in _members(self._formed or ()).items()
            if group not in self._left
        }
        groups = _members(formed)
        kept = [known.get(places) for places in groups.values()]
        used = set(kept)
        free = (number for number in range(len(groups)) if number not in used)
        before = self._numbers
        self._numbers = [next(free) if number is None else number for number in kept]
        changed: dict[int, InputGroup | None] = dict.fromkeys(set(before).difference(self._numbers))
        for places, number, same in zip(groups.values(), self._numbers, kept, strict=True):
            if same is None:
                changed[number] = self.group_at(places, start)
        return changed


def _members(groups: Sequence[int | None]) -> dict[int, Places]:
    """Return the places of the members of each group."""
    found: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        if group is not None:
            found.setdefault(group, []).append(place)
    return {group: tuple(places) for group, places in found.items()}
