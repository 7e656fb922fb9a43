"""Rows at rest: as bytes, while nothing of their trace comes.

A run that was told can still change for a minute, and hardly ever does. A service holds tens of thousands of spans in that
state, each a dozen objects that would be looked at no more but to be freed, long after they have left every cache. As bytes
they take a fifth of the room, and are written while they are at hand.
"""

from __future__ import annotations

import marshal
from typing import Any, Final, TypeAlias

from otel_reliability.assembly import compiled
from otel_reliability.assembly.rows import ID_BYTES, MORE, Models, Standing, Tools
from otel_reliability.model.span import AgentSpan, Call

Rest: TypeAlias = tuple[bytes, bytes, Standing, Standing]
"""The ids of the rows and of other spans, one after the other; the rows; what those of model calls have in common, and those of
tool calls.
"""

_FORMAT: Final = 2
"""Of `marshal`: without references, which are dearer to look for than what they save."""
_CALLS: Final = 1
"""Where calls that were asked for stand in what few model calls tell."""


def lay_down(models: Models, tools: Tools, others: list[AgentSpan]) -> Rest | None:
    """The rows of a trace as bytes; None where they hold what has no place there, such as ids of another length.

    >>> from otel_reliability.assembly.rows import Models, Tools
    >>> wake(lay_down(Models(), Tools(), []))
    ([], [])
    """
    ids = compiled.packed(models, tools, others)
    if ids is None:
        return None
    told: list[Any] = models[:]
    for at in range(MORE, len(told), Models.width):
        if told[at] is not None:
            told[at] = _plain(told[at])
    try:
        written = marshal.dumps((told, tools[:]), _FORMAT)
    except ValueError:
        return None
    return ids, written, models.standing, tools.standing


def wake(rest: Rest) -> tuple[Models, Tools]:
    """The rows again."""
    _, written, of_models, of_tools = rest
    told, called = marshal.loads(written)  # noqa: S302 (nobody else has written it)
    for at in range(MORE, len(told), Models.width):
        if told[at] is not None:
            told[at] = _named(told[at])
    return Models.again(told, of_models), Tools.again(called, of_tools)


def count_of(rest: Rest) -> int:
    """How many spans the ids are of."""
    return len(rest[0]) // ID_BYTES


def _plain(more: tuple[Any, ...]) -> tuple[Any, ...]:
    calls: tuple[Call, ...] = more[_CALLS]
    return (*more[:_CALLS], tuple([tuple(call) for call in calls]), *more[_CALLS + 1 :])


def _named(more: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*more[:_CALLS], tuple(map(Call._make, more[_CALLS])), *more[_CALLS + 1 :])
