"""retry_explosion and loops: does the agent keep retrying what fails, or repeat calls that already
succeeded?
"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics._support.sums import Counts, ExactSum
from otel_reliability.metrics.base import CALLS, DEFAULTS, UNDISTURBED, Metric
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class RepeatedCalls(Metric):
    """Calls that brought nothing, and what they cost per run. State: integers, and an exact sum of
    money.

    The money that they cost a run is its cost by their share of its tokens.
    """

    __slots__ = ("_calls", "_cost", "_ns", "_priced", "_runs", "_tokens", "_unknown")

    requires = UNDISTURBED | CALLS

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = self._calls = self._tokens = self._ns = self._unknown = self._priced = 0
        self._cost = ExactSum()

    def count_calls(self, row: Row, calls: int, tokens: int, duration_ns: int, sign: int) -> None:
        """Count a run with so many such calls, that took so many tokens and nanoseconds, in (1) or
        out (-1).
        """
        self._runs += sign
        self._calls += sign * calls
        self._tokens += sign * tokens
        self._ns += sign * duration_ns
        self._unknown += sign * (not row.arguments_known)
        if row.cost is not None and row.tokens:
            self._priced += sign
            if tokens:
                self._cost.add(row.cost * min(tokens / row.tokens, 1.0), sign)

    def calls_per_run(self) -> Reading:
        """Return such calls per run."""
        return self.over_runs(self._calls)

    def cost_per_run(self) -> tuple[Reading, Reading, Reading]:
        """Return tokens, seconds and US dollars per run."""
        usd = Reading(self._cost.mean(self._priced), self._priced) if self._priced else NO_DATA
        return self.over_runs(self._tokens), self.over_runs(self._ns, 10**9), usd

    def over_runs(self, count: int, per: int = 1) -> Reading:
        """Return a count over the number of runs."""
        return self.noted(count / (self._runs * per)) if self._runs else NO_DATA

    def noted(self, value: float) -> Reading:
        """Return the reading of a value, with a note where arguments are unknown; no value without
        a run.
        """
        if not self._runs:
            return NO_DATA
        note = (
            f"arguments unknown in {self._unknown} of {self._runs} runs: their calls are "
            "matched by tool alone"
        )
        return Reading(value, self._runs, note=note if self._unknown else "")


def _costs(per_run: MetricSpec, prefix: str, spent_on: str, calls: str) -> tuple[MetricSpec, ...]:
    """Return the specs of `RepeatedCalls.cost_per_run`, from what all companions of a metric have
    in common.
    """
    cost = per_run._replace(high=None)
    return (
        cost._replace(
            name=f"{prefix}_tokens_per_run",
            title=f"Tokens spent on {spent_on}",
            unit="{token}",
            description=f"Tokens per run of the model calls that asked for {calls}.",
            formula="Σ tokens / n",
        ),
        cost._replace(
            name=f"{prefix}_seconds_per_run",
            title=f"Time spent on {spent_on}",
            unit="s",
            description=f"Seconds per run that {calls} took.",
            formula=f"Σ duration of {calls} / n",
        ),
        cost._replace(
            name=f"{prefix}_cost_per_run",
            title=f"Money spent on {spent_on}",
            unit="{usd}",
            description=(
                f"Cost per run of the model calls that asked for {calls}, by their share of "
                "the run's tokens."
            ),
            formula=f"Σ cost · tokens of {calls} / tokens of the run / n",
            required_data="1 run with observable tools, cost and tokens",
            interval="none",
        ),
    )


class RetryExplosion(RepeatedCalls):
    """1 if any run of the window has a chain of at least `metrics.retry_threshold` (3) retries of
    one call, else 0.

    A retry is a call of the same tool with the same arguments whose latest earlier attempt failed;
    a success ends the chain. So the fourth attempt at a failing call exceeds the threshold of 3. A
    streak of calls without a failure is none.

    The source's example is a call that failed and was retried 5 times; the third retry made it an
    explosion:

    >>> from otel_reliability.testing import row
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
    >>> {
    ...     spec.name: reading.value
    ...     for spec, reading in zip(retries.companions[:3], retries.companion_values())
    ... }
    {'retry_explosion_share': 0.25, 'longest_retry_chain': 3.0, 'retries_per_run': 1.25}
    """

    __slots__ = ("_chains", "_exploding", "_threshold")

    spec = MetricSpec(
        name="retry_explosion",
        title="Retry explosion",
        family="stability",
        direction="lower",
        description="1 if any run retried one failing call at least three times, else 0.",
        formula="1 if any run has a chain of ≥ 3 retries, else 0",
        required_data="1 run with observable tools",
        source="AgentCop, Reliability Layer",
        improve="Bound retries in code, and make errors say whether a further attempt can succeed.",
    )
    _per_run = spec._replace(
        source="this project", improve="As for retry explosion.", interval="runs"
    )
    companions = (
        _per_run._replace(
            name="retry_explosion_share",
            title="Share of exploding runs",
            description="The share of runs that retried one failing call at least three times.",
            formula="runs with a chain of ≥ 3 retries / n",
            interval="share",
        ),
        _per_run._replace(
            name="longest_retry_chain",
            title="Longest retry chain",
            unit="{retry}",
            high=None,
            description="The most retries of one call in any run.",
            formula="max over runs of the longest chain",
            interval="none",
        ),
        _per_run._replace(
            name="retries_per_run",
            title="Retries per run",
            unit="{retry}",
            high=None,
            description="How many calls per run were retries.",
            formula="Σ retries / n",
        ),
        *_costs(_per_run, "retry", "retries", "retries"),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._threshold = settings.metrics.retry_threshold
        self._exploding = 0
        self._chains = Counts[int]()

    def count(self, row: Row, sign: int) -> None:
        retries = row.retries
        if retries is not None:
            self.count_calls(row, retries.number, retries.tokens, retries.duration_ns, sign)
            if retries.number:
                self._exploding += sign * (retries.longest_chain >= self._threshold)
                self._chains.count(retries.longest_chain, sign)

    def value(self) -> Reading:
        return self.noted(float(self._exploding > 0))

    def companion_values(self) -> tuple[Reading, ...]:
        longest = self.noted(float(max(self._chains, default=0)))
        return self.over_runs(self._exploding), longest, self.calls_per_run(), *self.cost_per_run()


class Loops(RepeatedCalls):
    """Repeats per run: calls of the same tool with the same arguments after a success (and, where
    known, the same result).

    A retry repeats a *failed* call and is counted apart. Repetition without progress is what loop
    detectors of agent frameworks look for.

    >>> from otel_reliability.testing import row
    >>> loops = Loops()
    >>> for repeats in (0, 0, 3, 1):
    ...     loops.add(row(repeats=repeats))
    >>> loops.value().value, loops.companion_values()[0].value
    (1.0, 0.5)
    """

    __slots__ = ("_looping",)

    spec = MetricSpec(
        name="loops",
        title="Repeated calls per run",
        family="stability",
        unit="{call}",
        high=None,
        direction="lower",
        description=(
            "How many calls per run repeat one that already succeeded, with the same arguments."
        ),
        formula="Σ repeats / n",
        required_data="1 run with observable tools",
        source="this project",
        improve=(
            "Give the agent its earlier results back (they may have left its context), and "
            "limit its turns."
        ),
        interval="runs",
    )
    _per_run = spec._replace(improve="As for repeated calls per run.")
    companions = (
        _per_run._replace(
            name="loop_share",
            title="Share of looping runs",
            unit="{ratio}",
            high=1.0,
            description="The share of runs that repeat a call that already succeeded.",
            formula="runs with a repeat / n",
            interval="share",
        ),
        *_costs(_per_run, "loop", "loops", "repeats"),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._looping = 0

    def count(self, row: Row, sign: int) -> None:
        retries = row.retries
        if retries is not None:
            self.count_calls(row, retries.repeats, retries.repeat_tokens, retries.repeat_ns, sign)
            self._looping += sign * bool(retries.repeats)

    def value(self) -> Reading:
        return self.calls_per_run()

    def companion_values(self) -> tuple[Reading, ...]:
        return self.over_runs(self._looping), *self.cost_per_run()
