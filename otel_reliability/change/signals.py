"""The signals: the numbers of an observation in which a change may show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final, NamedTuple

from otel_reliability.model.observation import Observation

PATH: Final = "path"


class Signal(NamedTuple):
    """One number of an observation. `read` gives None where it has no data for it; `words` names it
    in a sentence.
    """

    words: str
    unit: str
    read: Callable[[Observation], float | None]


def _path(_: Observation) -> float | None:
    """Return None: the path signal needs the reference, and `Reference.distance` computes it."""
    return None


def _model_calls(observation: Observation) -> float | None:
    """Return the number of model calls whose output tokens are known; without any there
    is no data.
    """
    return observation.replies or None


def _reply_tokens(observation: Observation) -> float | None:
    """Return the mean length of the model's replies, which differs between models whatever the
    number of turns a task takes.
    """
    return observation.reply_tokens / observation.replies if observation.replies else None


SIGNALS: Final[Mapping[str, Signal]] = {
    PATH: Signal("share of steps unlike those of the reference", "{ratio}", _path),
    "calls": Signal("tool calls", "{call}", attrgetter("calls")),
    "failed_calls": Signal("failed tool calls", "{call}", attrgetter("failed_calls")),
    "output_tokens": Signal("output tokens", "{token}", attrgetter("output_tokens")),
    "model_calls": Signal("model calls", "{call}", _model_calls),
    "reply_tokens": Signal("output tokens a model call", "{token}", _reply_tokens),
    "largest_input": Signal(
        "largest input of a model call", "{token}", attrgetter("largest_input")
    ),
    "outcome": Signal("failed runs", "{run}", attrgetter("failures")),
    "errors": Signal("runs that ended in an error", "{run}", attrgetter("errors")),
}
"""Every signal of any agent, by name. To add one: a field of `Observation` and a line here."""


def _of_totals(above: str, below: str) -> Callable[[Observation], float | None]:
    """Return what divides two sums over the prompts that read or changed files."""

    def read(observation: Observation) -> float | None:
        coding = observation.coding
        total = 0 if coding is None else getattr(coding, below)
        return getattr(coding, above) / total if total else None

    return read


def _per_prompt(
    total: Callable[[Observation], float | None],
) -> Callable[[Observation], float | None]:
    """Return what divides a number of a coding agent's observation by its prompts."""

    def read(observation: Observation) -> float | None:
        found = None if observation.coding is None else total(observation)
        return None if found is None else found / observation.prompts

    return read


CODING_SIGNALS: Final[Mapping[str, Signal]] = {
    "reads_before_edit": Signal(
        "reads before the first edit",
        "{call}",
        _of_totals("reads_before_edit", "editing_prompts"),
    ),
    "tested_edit_share": Signal(
        "edits that were tested", "{ratio}", _of_totals("tested_prompts", "testable_prompts")
    ),
    "failed_edit_share": Signal("failed edits", "{ratio}", _of_totals("failed_edits", "edits")),
    "edits_per_prompt": Signal("edits a prompt", "{call}", _per_prompt(attrgetter("coding.edits"))),
    "calls_per_prompt": Signal("tool calls a prompt", "{call}", _per_prompt(attrgetter("calls"))),
    "tokens_per_prompt": Signal("tokens a prompt", "{token}", _per_prompt(attrgetter("tokens"))),
    "cancelled_share": Signal("cancelled prompts", "{ratio}", _per_prompt(attrgetter("cancelled"))),
}
"""The further signals of coding agents."""


def _cache_hits(observation: Observation) -> float | None:
    """Return the share of cached input tokens, of the model calls that report them."""
    given = observation.input_tokens
    return observation.cached_tokens / given if given else None


CACHE_SIGNALS: Final[Mapping[str, Signal]] = {
    "cache_hit_share": Signal("cached input tokens", "{ratio}", _cache_hits),
}
"""The further signal of agents whose model calls report cached tokens."""


FURTHER: Final[Sequence[Mapping[str, Signal]]] = (CACHE_SIGNALS, CODING_SIGNALS)
"""The signals of agents of some kind; others have no data for them."""
ALL_SIGNALS: Final[Mapping[str, Signal]] = {**SIGNALS, **CACHE_SIGNALS, **CODING_SIGNALS}
"""Every signal, by name."""


def are_known(names: AbstractSet[str]) -> bool:
    """Return whether these are all signals of one kind of agent: those of any, and of each further
    kind all or none.
    """
    whole = all(names >= kind.keys() or names.isdisjoint(kind) for kind in FURTHER)
    return whole and ALL_SIGNALS.keys() >= names >= SIGNALS.keys()
