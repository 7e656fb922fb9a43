"""retry_explosion: does the agent keep retrying what fails?"""

from __future__ import annotations

from collections import Counter
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.metrics._support.waste import Waste, arguments_note
from otel_reliability.metrics.base import DEFAULTS, SumMetric
from otel_reliability.metrics.data import CALLS, UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, IntervalMethod, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row

RATIO: Final = "{ratio}"


def _companion(
    name: str, title: str, unit: str, description: str, formula: str, interval: IntervalMethod = "runs"
) -> MetricSpec:
    return MetricSpec(
        name=name,
        title=title,
        family="stability",
        unit=unit,
        high=1.0 if unit == RATIO else None,
        direction="lower",
        description=description,
        formula=formula,
        evidence="1 run with observable tools",
        source="this project",
        improve="As for retry explosion.",
        interval=interval,
    )


class RetryExplosion(SumMetric):
    """1 if any run of the window has a chain of at least `metrics.retry_threshold` (3) retries of one call, else 0.

    A retry is a call of the same tool with the same arguments whose latest earlier attempt failed; a success ends the chain.
    So the fourth attempt at a failing call exceeds the threshold of 3. A streak of calls without a failure is none.
    With it: the share of exploding runs, the longest chain, and what retries cost per run. Needs 1 run with observable
    tools. State: integers.

    The source's example is a call that failed and was retried 5 times; the third retry made it an explosion:

    >>> from otel_reliability.metrics.examples import row
    >>> retries = RetryExplosion()
    >>> retries.add(row(retries=5))
    >>> retries.value().value
    1.0
    >>> retries.evict(row(retries=5))
    >>> for chain in (0, 2, 3, 0):
    ...     retries.add(row(retries=chain))
    ...     print(retries.value().value)
    0.0
    0.0
    1.0
    1.0
    >>> {spec.name: reading.value for spec, reading in zip(retries.companions[:3], retries.companion_values())}
    {'retry_explosion_share': 0.25, 'longest_retry_chain': 3.0, 'retries_per_run': 1.25}

    References: AgentCop, *Reliability Layer*, "Retry Explosion".
    """

    __slots__ = (
        "_chains",
        "_cost_ns",
        "_exploding",
        "_retries",
        "_runs",
        "_threshold",
        "_tokens",
        "_unknown",
        "_waste",
    )

    requires = UNDISTURBED | CALLS

    spec = MetricSpec(
        name="retry_explosion",
        title="Retry explosion",
        family="stability",
        direction="lower",
        description="1 if any run retried one failing call at least three times, else 0.",
        formula="1 if any run has a chain of ≥ 3 retries, else 0",
        evidence="1 run with observable tools",
        source="AgentCop, Reliability Layer",
        improve="Bound retries in code, and make errors say whether a further attempt can succeed.",
    )
    companions = (
        _companion(
            "retry_explosion_share",
            "Share of exploding runs",
            RATIO,
            "The share of runs that retried one failing call at least three times.",
            "runs with a chain of ≥ 3 retries / n",
            "share",
        ),
        _companion(
            "longest_retry_chain",
            "Longest retry chain",
            "{retry}",
            "The most retries of one call in any run.",
            "max over runs of the longest chain",
            "none",
        ),
        _companion(
            "retries_per_run",
            "Retries per run",
            "{retry}",
            "How many calls per run were retries.",
            "Σ retries / n",
        ),
        _companion(
            "retry_tokens_per_run",
            "Tokens spent on retries",
            "{token}",
            "Tokens per run of the model calls that asked for retries.",
            "Σ tokens / n",
        ),
        _companion(
            "retry_seconds_per_run",
            "Time spent on retries",
            "s",
            "Seconds per run that retried calls took.",
            "Σ duration of retries / n",
        ),
        _companion(
            "retry_cost_per_run",
            "Money spent on retries",
            "{usd}",
            "Cost per run of the model calls that asked for retries, by their share of the run's tokens.",
            "Σ cost · tokens of retries / tokens of the run / n",
            "none",
        ),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._threshold = settings.metrics.retry_threshold
        self._runs = self._exploding = self._retries = self._tokens = self._cost_ns = self._unknown = 0
        self._chains: Counter[int] = Counter()
        self._waste = Waste()

    def count(self, row: Row, sign: int) -> None:
        retries = row.retries
        if retries is None or row.condition != BASELINE:
            return
        self._runs += sign
        self._unknown += sign * (not row.arguments_known)
        self._waste.count(row, retries.tokens, sign)
        if retries.number:
            self._exploding += sign * (retries.longest_chain >= self._threshold)
            self._retries += sign * retries.number
            self._tokens += sign * retries.tokens
            self._cost_ns += sign * retries.duration_ns
            self._chains[retries.longest_chain] += sign
            if not self._chains[retries.longest_chain]:
                del self._chains[retries.longest_chain]

    def value(self) -> Reading:
        return self._readings(float(self._exploding > 0))[0]

    def companion_values(self) -> tuple[Reading, ...]:
        runs = self._runs or 1
        readings = self._readings(
            self._exploding / runs,
            float(max(self._chains, default=0)),
            self._retries / runs,
            self._tokens / runs,
            self._cost_ns / (runs * 10**9),
        )
        return (*readings, self._waste.value())

    def _readings(self, *values: float) -> tuple[Reading, ...]:
        if not self._runs:
            return (NO_EVIDENCE,) * len(values)
        note = arguments_note(self._unknown, self._runs)
        return tuple([Reading(value, self._runs, (), note) for value in values])
