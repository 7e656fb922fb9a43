"""Settled runs → counters and histograms, each run once.

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
Labels: TypeAlias = tuple[tuple[str, str | bool], ...]


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


class Sums:
    """What the counters are to be raised by, over a batch of runs: the SDK takes ten microseconds each time it is told.

    The exemplar of a sum is its last run's, as it would be if the counter were told of each run.
    """

    def __init__(self, counters: Mapping[str, Adds]) -> None:
        self._counters = counters
        self._sums: dict[tuple[str, AgentKey, Labels], tuple[int, Any]] = {}

    def raise_by(self, number: int, spec: Instrument, key: AgentKey, labels: Labels, exemplar: Any) -> None:
        """Raise the counter of an agent by so much."""
        place = (spec.name, key, labels)
        before, _ = self._sums.get(place, (0, None))
        self._sums[place] = (before + number, exemplar)

    def tell(self) -> None:
        """Raise the counters themselves."""
        for (name, key, labels), (number, exemplar) in self._sums.items():
            self._counters[name].add(number, {**of_agent(key), **dict(labels)}, exemplar)


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
        sums = Sums(self._counters)
        for run, calls in own_calls(runs):
            standing, exemplar = standings[run.run_id], self._exemplar_of(run)
            self._count(run, standing.counted_as, calls, sums, exemplar)
            if standing.counted_as == run.key:
                self._measure(run, standing, of_agent(run.key), exemplar)
        sums.tell()

    def begin(self, runs: Sequence[Run], counted_as: Callable[[AgentKey], AgentKey]) -> None:
        """Begin, at 0, the counters that closed runs will raise once they are recorded: a rate would not see their first run."""
        sums = Sums(self._counters)
        for run, calls in own_calls(runs):
            self._count(run._replace(weight=0), counted_as(run.key), calls, sums, self._exemplar_of(None))
        sums.tell()

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

    def _count(self, run: Run, key: AgentKey, calls: Sequence[ToolCall], sums: Sums, exemplar: Any) -> None:
        sums.raise_by(run.weight, names.RUNS, key, ((names.OUTCOME, run.outcome.value),), exemplar)
        for call in calls:
            tool = (names.TOOL, self._ledger.name(key, call.name) if key == run.key else names.OTHER)
            sums.raise_by(run.weight, names.TOOL_CALLS, key, (tool, (names.OK, call.ok)), exemplar)
            if call.retry:
                sums.raise_by(run.weight, names.RETRIES, key, (tool,), exemplar)
        if any(call.chain >= self._threshold for call in calls):
            sums.raise_by(run.weight, names.RETRY_EXPLOSIONS, key, (), exemplar)

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
