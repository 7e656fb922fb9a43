"""Runs of a batch, by agent and by what counters can tell of them.

An agent does much the same again and again. So most of what is recorded is worked out once for all runs that are alike: in their
outcome, and in the tools they called with what success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from otel_reliability.model.run import AgentKey, Outcome, Run
from otel_reliability.model.tool_calls import ToolCall, ToolCalls
from otel_reliability.telemetry.own_calls import calls_apart, inner_first, named

Like: TypeAlias = tuple[int, tuple[Any, ...]]
"""What a run is like: its outcome, by identity, and of its calls the columns up to the agent (none: they are unobservable)."""

_FRONT: Final = ToolCalls.fields.index("agent") + 1
TOLD: Final[Callable[[Run], tuple[AgentKey, Outcome, Sequence[ToolCall] | None]]] = itemgetter(
    *map(Run._fields.index, ("key", "outcome", "tool_calls"))
)
"""What of a run says what it is like, and whose it is."""


def front_of(calls: Sequence[ToolCall] | None) -> tuple[Any, ...]:
    """The columns of calls up to the agent."""
    if calls is None:
        return ()
    known = calls if type(calls) is ToolCalls else ToolCalls.of(calls)
    return known.columns[:_FRONT] if known.packed is None else known.front


def calls_in(like: Like) -> int:
    """How many calls runs of this kind have: what it takes to remember it."""
    front = like[1]
    return len(front[0]) if front else 0


class OfAgent:
    """The runs of one agent, by their places in the batch."""

    __slots__ = ("key", "kinds", "places")

    def __init__(self, key: AgentKey) -> None:
        self.key = key
        self.places: list[int] = []
        self.kinds: dict[Like, Kind] = {}
        """Those of which a run may be that shares its trace with none."""

    def retries(self, batch: Sequence[Run]) -> list[int | None]:
        """How many of its calls were retries, of each of its runs; None where they are unobservable."""
        known: dict[int, int | None] = {}
        for kind in self.kinds.values():
            known.update(dict.fromkeys(kind.places, batch[kind.places[0]].retries))
        return [known[at] if at in known else batch[at].retries for at in self.places]


class Kind:
    """Runs of the agent of this key that are alike, by their places in the batch. `calls` are those of each that count."""

    __slots__ = ("calls", "key", "like", "outcome", "places")

    def __init__(self, key: AgentKey, outcome: Outcome, like: Like, calls: ToolCalls) -> None:
        self.key, self.outcome, self.like, self.calls = key, outcome, like, calls
        self.places: list[int] = []


class Batch:
    """Runs in the order in which they count, the inner ones first; by agent; and by kind, as each first comes.

    A run that shares its trace with another is a kind by itself: some of its calls may be the other's.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = inner_first(runs)
        self.agents: dict[AgentKey, OfAgent] = {}
        self.kinds: list[Kind] = []
        apart, known = calls_apart(self.runs), dict[int, OfAgent]()
        for at, (key, outcome, calls) in enumerate(map(TOLD, self.runs)):
            ours = known.get(id(key))  # most runs of an agent have one key
            if ours is None:
                ours = known[id(key)] = self.agents.setdefault(key, OfAgent(key))
            ours.places.append(at)
            if apart and at in apart:
                kind = self._kind(key, outcome, (id(outcome), front_of(apart[at])), apart[at])
            else:
                like = id(outcome), front_of(calls)
                kind = ours.kinds.get(like)
                if kind is None:
                    kind = ours.kinds[like] = self._kind(key, outcome, like, named(calls, key.agent))
            kind.places.append(at)

    def _kind(self, key: AgentKey, outcome: Outcome, like: Like, calls: ToolCalls) -> Kind:
        kind = Kind(key, outcome, like, calls)
        self.kinds.append(kind)
        return kind
