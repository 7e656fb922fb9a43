"""The cost of a run: the sum over its model calls, where each of them is known.

A call's cost is the one that its telemetry reports, else its tokens times the list price of its
model. One call whose cost is unknown makes that of the run unknown: part of a sum is no sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from otel_reliability import price_table
from otel_reliability.assembly.steps import ModelSpan
from otel_reliability.model.span import AgentSpan, ModelFacts
from otel_reliability.price_table import Usage


def cost_of_run(
    models: Iterable[ModelSpan], spans: Sequence[AgentSpan], *, estimate: bool
) -> float | None:
    """Return the cost in USD of the model calls of a run; None where that of one is unknown, and
    where there is none. `estimate`: whether the price table counts.
    """
    total = None
    for one in models:
        cost = one.facts.cost
        if cost is None and estimate:
            cost = estimated(one.facts, spans[one.at].start_ns)
        if cost is None:
            return None
        total = cost if total is None else total + cost
    return None if total is None else float(total)


def estimated(facts: ModelFacts, time_ns: int) -> float | None:
    """Return what the tokens of a model call cost at list prices, in USD; None where they, the
    model or its price are unknown.

    Input tokens of which the telemetry does not say how many were cached are all new ones.
    """
    tokens = facts.tokens
    if tokens.input is None or tokens.output is None:
        return None
    for name in (facts.model, facts.request_model):
        price = None if name is None else price_table.price_of(name, facts.provider, time_ns)
        if price is not None:
            return price.of(
                Usage(tokens.input, tokens.output, facts.cached or 0, facts.cache_written or 0)
            )
    return None
