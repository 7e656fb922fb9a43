"""What the counters of one agent are to be raised by, over a batch of runs.

An agent does much the same again and again. So runs that are alike, in their outcome and in the tools they called with what
success, are only counted; what they say is spelt out once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from otel_reliability.model.run import AgentKey
from otel_reliability.model.tool_calls import ToolCalls
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.ledger import ToolLedger

Attributes: TypeAlias = Mapping[str, str | bool]
Raised: TypeAlias = tuple[int, int]
"""By how much, and which run of the batch was the last to do so."""
Place = TypeVar("Place")

_MARKS: Final = tuple(map(ToolCalls.fields.index, ("name", "ok", "retry", "chain")))
_marks_of: Final = cast("Callable[[tuple[Any, ...]], tuple[Any, ...]]", itemgetter(*_MARKS))
"""The columns of calls that counters tell."""


class Adds(Protocol):
    """A counter: the SDK's, or the service's own."""

    def add(self, amount: int, attributes: Attributes | None, context: Any, /) -> None: ...


class _Alike:
    """Runs that counters cannot tell apart. `tools` are the labels of their calls' tools; `refused` of them had no place."""

    __slots__ = ("last", "number", "refused", "tools")

    def __init__(self, tools: Sequence[str], refused: int) -> None:
        self.tools, self.refused = tools, refused
        self.number = self.last = 0


class Sums:
    """The sums of one agent. `own`: its tools go by their names, as far as the ledger has room.

    The exemplar of a sum is its last run's, as it would be if the counter were told of each run.
    """

    __slots__ = ("_alike", "_key", "_ledger", "_own", "_placed", "_threshold")

    def __init__(self, key: AgentKey, ledger: ToolLedger, threshold: int, *, own: bool) -> None:
        self._key, self._ledger, self._threshold, self._own = key, ledger, threshold, own
        self._placed = set[str]()
        self._alike: dict[tuple[str, tuple[Any, ...]], _Alike] = {}

    def run(self, at: int, outcome: str, calls: ToolCalls, weight: int) -> None:
        """The run at this place of the batch, that stands for `weight`, with its calls."""
        marks = _marks_of(calls.columns)
        alike = self._alike.get((outcome, marks))
        if alike is None:
            alike = self._alike[outcome, marks] = self._labelled(calls.names)
        elif alike.refused:
            self._ledger.refuse(alike.refused)
        alike.number += weight
        alike.last = at

    def tell(self, counters: Mapping[str, Adds], exemplars: Sequence[Any]) -> None:
        """Raise the counters themselves. `exemplars` are those of the batch's runs."""
        agent = of_agent(self._key)
        for name, labels, (number, last) in self._told():
            counters[name].add(number, {**agent, **labels}, exemplars[last])

    def _told(self) -> Iterator[tuple[str, Attributes, Raised]]:
        runs: dict[str, Raised] = {}
        calls: dict[tuple[str, bool], Raised] = {}
        retries: dict[str, Raised] = {}
        explosions: dict[None, Raised] = {}
        for (outcome, (_, oks, retried, chains)), alike in self._alike.items():
            number, last = alike.number, alike.last
            _raise(runs, outcome, number, last)
            longest = 0
            for tool, ok, retry, chain in zip(alike.tools, _each(oks), _each(retried), _each(chains), strict=False):
                _raise(calls, (tool, ok), number, last)
                if retry:
                    _raise(retries, tool, number, last)
                longest = max(longest, chain)
            if alike.tools and longest >= self._threshold:
                _raise(explosions, None, number, last)
        yield from ((names.RUNS.name, {names.OUTCOME: outcome}, raised) for outcome, raised in runs.items())
        for (tool, ok), raised in calls.items():
            yield names.TOOL_CALLS.name, {names.TOOL: tool, names.OK: ok}, raised
        yield from ((names.RETRIES.name, {names.TOOL: tool}, raised) for tool, raised in retries.items())
        yield from ((names.RETRY_EXPLOSIONS.name, {}, raised) for raised in explosions.values())

    def _labelled(self, tools: Sequence[str]) -> _Alike:
        """The tools as labels. Whoever has no place asks each time: it is counted how often."""
        labels = [self._label(name) for name in tools]
        refused = sum(label != name for label, name in zip(labels, tools, strict=True)) if self._own else 0
        return _Alike(labels, refused)

    def _label(self, name: str) -> str:
        if name in self._placed:
            return name
        found = self._ledger.name(self._key, name) if self._own else names.OTHER
        if found == name:
            self._placed.add(name)
        return found


def _each(column: Any) -> Iterable[Any]:
    """The values of a column, which is one value where all are the same."""
    return cast("tuple[Any, ...]", column) if type(column) is tuple else repeat(column)


def _raise(sums: dict[Place, Raised], place: Place, number: int, last: int) -> None:
    before = sums.get(place)
    sums[place] = (number, last) if before is None else (before[0] + number, max(before[1], last))
