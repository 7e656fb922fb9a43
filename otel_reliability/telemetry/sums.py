"""What the counters of one agent are to be raised by, over a batch of runs.

An agent does much the same again and again. So runs that are alike, in their outcome and in the tools they called with what
success, are only counted; what they say is spelt out once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from otel_reliability.model.run import AgentKey, Outcome, Run
from otel_reliability.model.tool_calls import NO_TOOL_CALLS, ToolCalls
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.ledger import ToolLedger

Attributes: TypeAlias = Mapping[str, str | bool]
Raised: TypeAlias = tuple[int, int]
"""By how much, and which run of the batch was the last to do so."""
Place = TypeVar("Place")
Like: TypeAlias = tuple[int, tuple[Any, ...]]
"""What a run is like: its outcome, by identity, and what counters tell of its calls."""

_AGENT: Final = ToolCalls.fields.index("agent")
_MARKS: Final = tuple(map(ToolCalls.fields.index, ("name", "ok", "retry", "chain")))
_marks_of: Final = cast("Callable[[tuple[Any, ...]], tuple[Any, ...]]", itemgetter(*_MARKS))
"""What counters tell of calls, of their columns."""


def like_of(run: Run) -> Like | None:
    """What a run is like; None: look at its calls, of which some may be another agent's.

    >>> from otel_reliability.testing import run
    >>> like_of(run(["search"], 1)) == like_of(run(["search"], 2)) != like_of(run(["read"]))
    True
    """
    calls = NO_TOOL_CALLS if run.tool_calls is None else ToolCalls.of(run.tool_calls)
    columns = calls.first
    return (id(run.outcome), _marks_of(columns)) if columns[_AGENT] == run.key.agent or not calls else None


def calls_in(like: Like) -> int:
    """How many calls runs of this kind have: what it takes to remember it."""
    return len(like[1][0])


class Adds(Protocol):
    """A counter: the SDK's, or the service's own."""

    def add(self, amount: int, attributes: Attributes | None, context: Any, /) -> None: ...


class _Alike:
    """Runs that counters cannot tell apart. `tools` are the labels of their calls' tools; `refused` of them had no place."""

    __slots__ = ("last", "number", "outcome", "refused", "tools")

    def __init__(self, outcome: Outcome, tools: Sequence[str], refused: int) -> None:
        self.outcome, self.tools, self.refused = outcome, tools, refused
        self.number = self.last = 0


class Sums:
    """The sums of one agent. `own`: its tools go by their names, as far as the ledger has room.

    The exemplar of a sum is its last run's, as it would be if the counter were told of each run.
    """

    __slots__ = ("_alike", "_key", "_ledger", "_own", "_placed", "_threshold")

    def __init__(self, key: AgentKey, ledger: ToolLedger, threshold: int, *, own: bool) -> None:
        self._key, self._ledger, self._threshold, self._own = key, ledger, threshold, own
        self._placed = set[str]()
        self._alike: dict[Like, _Alike] = {}

    def run(self, at: int, outcome: Outcome, calls: ToolCalls, weight: int) -> None:
        """The run at this place of the batch, that stands for `weight`, with its calls."""
        like = id(outcome), _marks_of(calls.first)
        alike = self._alike.get(like)
        if alike is None:
            alike = self._alike[like] = self._labelled(outcome, calls.names)
        elif alike.refused:
            self._ledger.refuse(alike.refused)
        alike.number += weight
        alike.last = at

    @property
    def placed(self) -> Iterator[Like]:
        """What runs were like all of whose tools have a place."""
        return (like for like, alike in self._alike.items() if not alike.refused)

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
        for (_, (_, oks, retried, chains)), alike in self._alike.items():
            number, last = alike.number, alike.last
            _raise(runs, alike.outcome.value, number, last)
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

    def _labelled(self, outcome: Outcome, tools: Sequence[str]) -> _Alike:
        """The tools as labels. Whoever has no place asks each time: it is counted how often."""
        labels = [self._label(name) for name in tools]
        refused = sum(label != name for label, name in zip(labels, tools, strict=True)) if self._own else 0
        return _Alike(outcome, labels, refused)

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
