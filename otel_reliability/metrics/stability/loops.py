"""loops: does the agent repeat calls that already succeeded?"""

from __future__ import annotations

from otel_reliability.config import Settings
from otel_reliability.metrics._support.waste import Waste, arguments_note
from otel_reliability.metrics.base import DEFAULTS, SumMetric
from otel_reliability.metrics.data import CALLS, UNDISTURBED
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import BASELINE, Row


def _cost(name: str, title: str, unit: str, formula: str) -> MetricSpec:
    return MetricSpec(
        name=name,
        title=title,
        family="stability",
        unit=unit,
        high=None,
        direction="lower",
        description=f"{title} per run: of repeated calls, and of the model calls that asked for them.",
        formula=formula,
        evidence="1 run with observable tools" + (", cost and tokens" if unit == "{usd}" else ""),
        source="this project",
        improve="As for repeated calls per run.",
        interval="none" if unit == "{usd}" else "runs",
    )


class Loops(SumMetric):
    """Repeats per run: calls of the same tool with the same arguments after a success (and, where known, the same result).

    Beside it the share of runs with any. A retry repeats a *failed* call and is counted apart. Needs 1 run with observable
    tools. State: integers.

    >>> from otel_reliability.metrics.examples import row
    >>> loops = Loops()
    >>> for repeats in (0, 0, 3, 1):
    ...     loops.add(row(repeats=repeats))
    >>> loops.value().value, loops.companion_values()[0].value
    (1.0, 0.5)

    References: this project; repetition without progress is what loop detectors of agent frameworks look for.
    """

    __slots__ = ("_looping", "_ns", "_repeats", "_runs", "_tokens", "_unknown", "_waste")

    requires = UNDISTURBED | CALLS

    spec = MetricSpec(
        name="loops",
        title="Repeated calls per run",
        family="stability",
        unit="{call}",
        high=None,
        direction="lower",
        description="How many calls per run repeat one that already succeeded, with the same arguments.",
        formula="Σ repeats / n",
        evidence="1 run with observable tools",
        source="this project",
        improve="Give the agent its earlier results back (they may have left its context), and limit its turns.",
        interval="runs",
    )
    companions = (
        MetricSpec(
            name="loop_share",
            title="Share of looping runs",
            family="stability",
            direction="lower",
            description="The share of runs that repeat a call that already succeeded.",
            formula="runs with a repeat / n",
            evidence="1 run with observable tools",
            source="this project",
            improve="As for repeated calls per run.",
            interval="share",
        ),
        _cost("loop_tokens_per_run", "Tokens spent on loops", "{token}", "Σ tokens / n"),
        _cost("loop_seconds_per_run", "Time spent on loops", "s", "Σ duration of repeats / n"),
        _cost(
            "loop_cost_per_run", "Money spent on loops", "{usd}", "Σ cost · tokens of repeats / tokens of the run / n"
        ),
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._runs = self._looping = self._repeats = self._unknown = self._tokens = self._ns = 0
        self._waste = Waste()

    def count(self, row: Row, sign: int) -> None:
        if row.retries is not None and row.condition == BASELINE:
            self._runs += sign
            self._unknown += sign * (not row.arguments_known)
            self._waste.count(row, row.retries.repeat_tokens, sign)
            if row.retries.repeats:
                self._looping += sign
                self._repeats += sign * row.retries.repeats
                self._tokens += sign * row.retries.repeat_tokens
                self._ns += sign * row.retries.repeat_ns

    def value(self) -> Reading:
        return self._over_runs(self._repeats)

    def companion_values(self) -> tuple[Reading, ...]:
        loops, tokens, seconds = self._looping, self._tokens, self._over_runs(self._ns, 10**9)
        return self._over_runs(loops), self._over_runs(tokens), seconds, self._waste.value()

    def _over_runs(self, count: int, per: int = 1) -> Reading:
        if not self._runs:
            return NO_EVIDENCE
        return Reading(count / (self._runs * per), self._runs, note=arguments_note(self._unknown, self._runs))
