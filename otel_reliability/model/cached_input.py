"""Input of a run's model calls that the provider had in its cache."""

from __future__ import annotations

from typing import NamedTuple

from otel_reliability.model.run import Run


class CachedInput(NamedTuple):
    """Input tokens of the model calls that report how many of these were cached: those, and all."""

    cached: int
    given: int


def cached_input(run: Run) -> CachedInput:
    """Return the tokens of a run; 0 of 0 where no call reports them."""
    known = [
        (call.cached_tokens, call.input_tokens)
        for call in run.model_calls
        if call.cached_tokens is not None and call.input_tokens is not None
    ]
    return CachedInput(
        sum([min(cached, given) for cached, given in known]), sum([given for _, given in known])
    )
