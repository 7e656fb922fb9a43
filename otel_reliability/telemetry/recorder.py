"""Settled runs → counters and histograms, each run once (DESIGN §6.3).

Under head sampling a run counts with its weight: it stands for that many. Histograms are not weighted, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from otel_reliability.change.monitor import Change
from otel_reliability.config import Settings
from otel_reliability.metrics.sessions import SessionScore
from otel_reliability.model.run import AgentKey, Run, ToolCall
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exemplar import context_of
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.own_calls import own_calls
from otel_reliability.telemetry.standing import Standing
from otel_reliability.windows.sessions import SessionEvent

Attributes: TypeAlias = Mapping[str, str | bool]


class Adds(Protocol):
    """A counter: the SDK's, or the service's own."""

    def add(self, amount: int, attributes: Attributes | None, context: Any, /) -> None: ...


class Records(Protocol):
    """A histogram: the SDK's, or the service's own."""

    def record(self, amount: float, attributes: Attributes | None, context: Any, /) -> None: ...


class Makes(Protocol):
    """A meter, as far as it is needed here."""

    def create_counter(self, name: str, unit: str, description: str, /) -> Adds: ...

    def create_histogram(
        self, name: str, unit: str, description: str, /, *, explicit_bucket_boundaries_advisory: Sequence[float] | None
    ) -> Records: ...


class Recorder:
    """The counters and histograms of one meter. `exemplar_of` gives a run's trace in the form the meter takes exemplars in."""

    def __init__(
        self,
        meter: Makes,
        settings: Settings,
        ledger: ToolLedger,
        exemplar_of: Callable[[Run | None], Any] = context_of,
    ) -> None:
        self._ledger, self._exemplar_of = ledger, exemplar_of
        self._threshold = settings.metrics.retry_threshold
        self._standard = settings.telemetry.standard_metrics
        self._counters = {spec.name: _counter(meter, spec) for spec in names.COUNTERS}
        enabled = (*names.HISTOGRAMS, *names.STANDARD) if self._standard else names.HISTOGRAMS
        self._histograms = {spec.name: _histogram(meter, spec) for spec in enabled}

    def record(self, runs: Sequence[Run], standings: Mapping[str, Standing]) -> None:
        """Record runs that will not change any more. Runs of one trace that settle together must come together."""
        for run, calls in own_calls(runs):
            standing = standings[run.run_id]
            series, context = of_agent(standing.counted_as), self._exemplar_of(run)
            self._count(run, standing.counted_as, calls, series, context)
            if standing.counted_as == run.key:
                self._measure(run, standing, series, context)

    def score(self, events: Sequence[SessionEvent]) -> None:
        """Record sessions that have just closed; one that is scored again was recorded then."""
        for scores, first in events:
            if first:
                series, context = of_agent(scores.key), self._exemplar_of(None)
                self._record(names.SESSION_RELIABILITY, _value(scores.reliability), series, context)
                self._record(names.SESSION_CONSISTENCY, _value(scores.consistency), series, context)

    def change(self, changes: Sequence[Change]) -> None:
        """Count changes of behaviour."""
        for key, alarm in changes:
            self._add(names.CHANGES, 1, {**of_agent(key), names.SIGNAL: alarm.signal}, self._exemplar_of(None))

    def revise(self, runs: Sequence[Run], standings: Mapping[str, Standing]) -> None:
        """Count runs that changed after they had closed."""
        for run in runs:
            self._add(names.REVISIONS, run.weight, of_agent(standings[run.run_id].counted_as), self._exemplar_of(run))

    def _count(self, run: Run, key: AgentKey, calls: Sequence[ToolCall], series: dict[str, str], context: Any) -> None:
        self._add(names.RUNS, run.weight, {**series, names.OUTCOME: run.outcome.value}, context)
        for call in calls:
            tool = self._ledger.name(key, call.name) if key == run.key else names.OTHER
            labels = {**series, names.TOOL: tool}
            self._add(names.TOOL_CALLS, run.weight, {**labels, names.OK: call.ok}, context)
            if call.retry:
                self._add(names.RETRIES, run.weight, labels, context)
        if any(call.chain >= self._threshold for call in calls):
            self._add(names.RETRY_EXPLOSIONS, run.weight, series, context)

    def _measure(self, run: Run, standing: Standing, series: dict[str, str], context: Any) -> None:
        self._record(names.PATH_DISTANCE, standing.path_distance, series, context)
        self._record(names.TOKEN_PRESSURE, run.token_pressure, series, context)
        self._record(names.RUN_RETRIES, run.retries, series, context)
        self._record(names.RUN_SCORE, standing.score, series, context)
        if self._standard:
            self._record(names.STANDARD_DURATION, run.duration_s, series, context)
            self._record(names.STANDARD_INFERENCE_CALLS, len(run.model_calls), series, context)
            self._record(
                names.STANDARD_TOOL_CALLS, None if run.tool_calls is None else len(run.tool_calls), series, context
            )

    def _add(self, spec: Instrument, number: int, attributes: Attributes, context: Any) -> None:
        self._counters[spec.name].add(number, attributes, context)

    def _record(self, spec: Instrument, value: float | None, attributes: dict[str, str], context: Any) -> None:
        if value is not None:
            self._histograms[spec.name].record(value, attributes, context)


def _value(score: SessionScore | None) -> float | None:
    return None if score is None else score.score


def _counter(meter: Makes, spec: Instrument) -> Adds:
    return meter.create_counter(spec.name, spec.unit, spec.description)


def _histogram(meter: Makes, spec: Instrument) -> Records:
    return meter.create_histogram(
        spec.name, spec.unit, spec.description, explicit_bucket_boundaries_advisory=spec.boundaries
    )
