"""What the counters of one agent are to be raised by, over a batch of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from otel_reliability.model.run import AgentKey, Outcome
from otel_reliability.telemetry import names
from otel_reliability.telemetry.alike import Kind, Like, front_of
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.ledger import ToolLedger

Attributes: TypeAlias = Mapping[str, str | bool]
Raised: TypeAlias = tuple[int, int]
"""By how much, and which run of the batch was the last to do so."""
Place = TypeVar("Place")


class Adds(Protocol):
    """A counter: the SDK's, or the service's own."""

    def add(self, amount: int, attributes: Attributes | None, context: Any, /) -> None: ...


class _Labelled(NamedTuple):
    """Runs that counters cannot tell apart: how many they stand for, the last of them, and the labels of their calls' tools."""

    outcome: Outcome
    number: int
    last: int
    tools: Sequence[str]
    front: tuple[Any, ...]


class Sums:
    """The sums of one agent. `own`: its tools go by their names, as far as the ledger has room.

    The exemplar of a sum is its last run's, as it would be if the counter were told of each run.
    """

    __slots__ = ("_key", "_ledger", "_own", "_placed", "_taken", "_threshold", "placed")

    def __init__(self, key: AgentKey, ledger: ToolLedger, threshold: int, *, own: bool) -> None:
        self._key, self._ledger, self._threshold, self._own = key, ledger, threshold, own
        self._placed = set[str]()
        self._taken: list[_Labelled] = []
        self.placed: list[Like] = []
        """What runs were like all of whose tools have a place."""

    def take(self, kind: Kind, number: int, last: int) -> None:
        """Runs that are alike, and stand for so many. Whoever has no place asks each time: it is counted how often."""
        tools = kind.calls.names
        labels = [self._label(name) for name in tools]
        refused = sum(label != name for label, name in zip(labels, tools, strict=True)) if self._own else 0
        if refused:
            self._ledger.refuse(refused * (len(kind.places) - 1))
        else:
            self.placed.append(kind.like)
        self._taken.append(_Labelled(kind.outcome, number, last, labels, front_of(kind.calls)))

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
        for outcome, number, last, tools, (_, oks, retried, _, chains, _) in self._taken:
            _raise(runs, outcome.value, number, last)
            longest = 0
            for tool, ok, retry, chain in zip(tools, _each(oks), _each(retried), _each(chains), strict=False):
                _raise(calls, (tool, ok), number, last)
                if retry:
                    _raise(retries, tool, number, last)
                longest = max(longest, chain)
            if tools and longest >= self._threshold:
                _raise(explosions, None, number, last)
        yield from ((names.RUNS.name, {names.OUTCOME: outcome}, raised) for outcome, raised in runs.items())
        for (tool, ok), raised in calls.items():
            yield names.TOOL_CALLS.name, {names.TOOL: tool, names.OK: ok}, raised
        yield from ((names.RETRIES.name, {names.TOOL: tool}, raised) for tool, raised in retries.items())
        yield from ((names.RETRY_EXPLOSIONS.name, {}, raised) for raised in explosions.values())

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
