"""token_budget_pressure: how near to its context limit does the agent work?"""

from __future__ import annotations

from otel_reliability.metrics._support.per_run import PerRun
from otel_reliability.metrics._support.sums import clamp
from otel_reliability.metrics.base import PRESSURE, UNDISTURBED
from otel_reliability.model.reading import MetricSpec
from otel_reliability.model.row import Row


class TokenBudgetPressure(PerRun):
    """The mean over runs of the tokens of a run's fullest model call over its model's context
    limit, each cut at 1.

    Above 0.8 the *flag* `token_pressure_high` is set, which changes neither score nor tier.

    The source's example, a window of 128,000 tokens:

    >>> from otel_reliability.testing import row
    >>> pressure = TokenBudgetPressure()
    >>> for tokens in (24_300, 61_200, 98_400, 121_000, 115_000):
    ...     pressure.add(row(pressure=tokens / 128_000))
    >>> print(f"{pressure.value().value:.1%}")
    65.6%
    """

    __slots__ = ()

    requires = UNDISTURBED | PRESSURE

    spec = MetricSpec(
        name="token_budget_pressure",
        title="Token budget pressure",
        family="stability",
        direction="lower",
        description=(
            "How full the context window gets, averaged over runs: 1 is at the limit, where "
            "answers get truncated."
        ),
        formula="mean of min(tokens of the fullest model call / context limit, 1)",
        required_data="1 run with tokens and a known context limit",
        source="AgentCop, Reliability Layer",
        improve=(
            "Shorten tool results before they go to the model, summarise long conversations, "
            "or take a larger window."
        ),
        interval="runs",
    )

    def of_run(self, row: Row) -> float | None:
        return None if row.pressure is None else clamp(row.pressure)
