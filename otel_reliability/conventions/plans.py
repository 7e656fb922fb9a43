"""How to read the spans that carry certain keys, worked out once for each set of keys.

An instrumentation sets the same keys in the same order on span after span. So one look-up by those keys tells what to take, whom
to ask and what need not be looked for; nothing of it depends on a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.conventions import evaluations, notes
from otel_reliability.conventions.base import Convention
from otel_reliability.conventions.room import Room
from otel_reliability.conventions.stencils import Stencils

MESSAGING: Final = "messaging."
PLAN_BYTES: Final = 2_048
"""What a plan takes, roughly, beside its keys."""
MOST_KEYS: Final = 128
LONGEST_KEYS: Final = 8_192
"""Keys of a span, and their characters, beyond which its plan is not kept."""

Take: TypeAlias = Callable[[Mapping[str, Any]], tuple[Any, ...]]


class Plan(NamedTuple):
    """What to do with a span of certain keys.

    - `keys`: those that somebody looks at; `take` gives their values.
    - `conventions`: those that may know the span, in the order asked.
    - `noted`, `judged`, `messaging`: whether keys tell a user's notes, an evaluation, a messaging hop.
    - `stencils`: what many such spans share, None where nothing is known to be shared.
    """

    keys: tuple[str, ...]
    take: Take
    conventions: tuple[Convention, ...]
    noted: bool
    judged: bool
    messaging: bool
    stencils: Stencils | None


class Plans:
    """The plans for the spans of one scope. `scope` is the name it is told by, `conventions` those it may concern.

    `room` is for what is remembered; `shared` gives the stencils for spans of certain keys, which certain conventions may know.
    """

    def __init__(
        self,
        scope: str,
        conventions: tuple[Convention, ...],
        wanted: frozenset[str],
        prefixes: tuple[str, ...],
        room: Room,
        shared: Callable[[tuple[str, ...], tuple[Convention, ...]], Stencils | None],
    ) -> None:
        self.scope, self.conventions = scope, conventions
        self.known: dict[tuple[str, ...], Plan] = {}
        self._wanted, self._prefixes, self._room, self._shared = wanted, prefixes, room, shared

    def of(self, keys: tuple[str, ...]) -> Plan:
        """The plan for these keys."""
        return self.known.get(keys) or self.made(keys)

    def made(self, keys: tuple[str, ...]) -> Plan:
        """The plan for keys not seen before."""
        plan = self._plan(keys)
        if len(keys) <= MOST_KEYS and sum(map(len, keys)) <= LONGEST_KEYS:
            self._room.take(PLAN_BYTES + 2 * sum(map(len, keys)))
            self.known[keys] = plan
        return plan

    def _plan(self, keys: tuple[str, ...]) -> Plan:
        wanted = tuple(key for key in keys if key in self._wanted or key.startswith(self._prefixes))
        asked = tuple(one for one in self.conventions if _may_know(one, keys))
        return Plan(
            keys=wanted,
            take=_taker(wanted),
            conventions=asked,
            noted=any(key.startswith(notes.PREFIX) for key in keys),
            judged=evaluations.may_tell("\n".join(keys)),
            messaging=any(key.startswith(MESSAGING) for key in keys),
            stencils=self._shared(wanted, asked),
        )


def _may_know(convention: Convention, keys: Iterable[str]) -> bool:
    """Whether a convention may know a span of these keys: it needs one of some, or goes by other things."""
    needs: frozenset[str] = getattr(convention, "needs", frozenset())
    return not needs or not needs.isdisjoint(keys)


def _taker(keys: tuple[str, ...]) -> Take:
    """The values of these keys. `itemgetter` gives a tuple for two keys or more only."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return (lambda attributes: (attributes[keys[0]],)) if keys else _nothing


def _nothing(attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    return ()
