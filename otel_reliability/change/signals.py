"""The signals: the numbers of a unit in which a change may show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from otel_reliability.change.units import Unit
from otel_reliability.errors import ConfigurationError

PATH: Final = "path"


class Signal(NamedTuple):
    """One number of a unit. `read` gives None where the unit has no evidence for it; `words` names it in a sentence."""

    words: str
    unit: str
    read: Callable[[Unit], float | None]


def _path(_: Unit) -> float | None:
    """The path signal needs the reference: `Reference.distance` computes it."""
    return None


def _reply_tokens(unit: Unit) -> float | None:
    """How long the model's replies are: it tells one model from another whatever the number of turns a task takes."""
    return unit.reply_tokens / unit.replies if unit.replies else None


SIGNALS: Final[Mapping[str, Signal]] = {
    PATH: Signal("share of steps unlike those of the reference", "{ratio}", _path),
    "calls": Signal("tool calls", "{call}", attrgetter("calls")),
    "failed_calls": Signal("failed tool calls", "{call}", attrgetter("failed_calls")),
    "output_tokens": Signal("output tokens", "{token}", attrgetter("output_tokens")),
    "reply_tokens": Signal("output tokens a model call", "{token}", _reply_tokens),
    "largest_input": Signal("largest input of a model call", "{token}", attrgetter("largest_input")),
    "outcome": Signal("failed runs", "{run}", attrgetter("failures")),
}
"""Every signal by name. To add one: a field of `Unit` and a line here."""


@lru_cache
def readers(names: tuple[str, ...]) -> tuple[Callable[[Unit], float | None] | None, ...]:
    """What reads each of these signals, None for the path: looked up once, as every unit of every agent is read."""
    return tuple([None if name == PATH else SIGNALS[name].read for name in names])


def checked(names: Sequence[str]) -> tuple[str, ...]:
    """The configured signals, if all of them exist and none stands twice.

    >>> checked(["path", "calls"])
    ('path', 'calls')
    """
    if not names or len(set(names)) < len(names) or not set(names) <= SIGNALS.keys():
        raise ConfigurationError(
            "change.signals",
            tuple(names),
            f"a list of different names out of {', '.join(SIGNALS)}",
            "name at least one of them, each once",
        )
    return tuple(names)
