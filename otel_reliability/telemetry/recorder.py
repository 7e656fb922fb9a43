"""Settled runs → counters and histograms, each run once.

Under head sampling a run counts with its weight: it stands for that many. Histograms are not weighted, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from otel_reliability.change.monitor import Change
from otel_reliability.config import Settings
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
Raised: TypeAlias = tuple[int, Any]
"""By how much, and the exemplar."""
Place = TypeVar("Place")
Counted: TypeAlias = tuple[Run, AgentKey, Sequence[ToolCall], int, Any]
"""A run, the agent it counts for, the calls its own agent took, how many runs it stands for, and its exemplar."""


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
    """What the counters of one agent are to be raised by, over a batch of runs: the SDK takes ten microseconds a time.

    `own`: its tools go by their names, as far as the ledger has room. The exemplar of a sum is its last run's, as it would be
    if the counter were told of each run.
    """

    __slots__ = ("_calls", "_explosions", "_key", "_ledger", "_own", "_placed", "_retries", "_runs")

    def __init__(self, key: AgentKey, ledger: ToolLedger, *, own: bool) -> None:
        self._key, self._ledger, self._own = key, ledger, own
        self._placed = set[str]()
        self._runs: dict[str, Raised] = {}
        self._calls: dict[tuple[str, bool], Raised] = {}
        self._retries: dict[str, Raised] = {}
        self._explosions: dict[None, Raised] = {}

    def run(self, outcome: str, calls: Sequence[ToolCall], weight: int, threshold: int, exemplar: Any) -> None:
        """One more run, that stands for `weight`, with its calls. It explodes where a chain of retries reaches `threshold`."""
        longest = 0
        _raise(self._runs, outcome, weight, exemplar)
        for call in calls:
            tool = self._tool(call.name)
            _raise(self._calls, (tool, call.ok), weight, exemplar)
            if call.retry:
                _raise(self._retries, tool, weight, exemplar)
            longest = max(longest, call.chain)
        if calls and longest >= threshold:
            _raise(self._explosions, None, weight, exemplar)

    def tell(self, counters: Mapping[str, Adds]) -> None:
        """Raise the counters themselves."""
        agent = of_agent(self._key)
        for name, labels, (number, exemplar) in self._told():
            counters[name].add(number, {**agent, **labels}, exemplar)

    def _told(self) -> Iterator[tuple[str, Attributes, Raised]]:
        for outcome, raised in self._runs.items():
            yield names.RUNS.name, {names.OUTCOME: outcome}, raised
        for (tool, ok), raised in self._calls.items():
            yield names.TOOL_CALLS.name, {names.TOOL: tool, names.OK: ok}, raised
        for tool, raised in self._retries.items():
            yield names.RETRIES.name, {names.TOOL: tool}, raised
        for raised in self._explosions.values():
            yield names.RETRY_EXPLOSIONS.name, {}, raised

    def _tool(self, name: str) -> str:
        """The tool as a label. Whoever has no place asks each time: it is counted how often."""
        if name in self._placed:
            return name
        found = self._ledger.name(self._key, name) if self._own else names.OTHER
        if found == name:
            self._placed.add(name)
        return found


def _raise(sums: dict[Place, Raised], place: Place, number: int, exemplar: Any) -> None:
    before = sums.get(place)
    sums[place] = (number if before is None else before[0] + number, exemplar)


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
        counted, series = list[Counted](), dict[AgentKey, dict[str, str]]()
        for run, calls in own_calls(runs):
            standing, exemplar = standings[run.run_id], self._exemplar_of(run)
            counted.append((run, standing.counted_as, calls, run.weight, exemplar))
            if standing.counted_as == run.key:
                agent = series.get(run.key) or series.setdefault(run.key, of_agent(run.key))
                self._measure(run, standing, agent, exemplar)
        self._count(counted)

    def begin(self, runs: Sequence[Run], counted_as: Callable[[AgentKey], AgentKey]) -> None:
        """Begin, at 0, the counters that closed runs will raise once they are recorded: a rate would not see their first run."""
        nothing = self._exemplar_of(None)
        self._count((run, counted_as(run.key), calls, 0, nothing) for run, calls in own_calls(runs))

    def score(self, events: Sequence[SessionEvent]) -> None:
        """Record sessions that have just closed; one that is scored again was recorded then."""
        for event in events:
            if event.first:
                series, context = of_agent(event.key), self._exemplar_of(None)
                self._record(names.SESSION_RELIABILITY, event.reliability, series, context)
                self._record(names.SESSION_CONSISTENCY, event.consistency, series, context)

    def change(self, changes: Sequence[Change]) -> None:
        """Count changes of behaviour."""
        for key, alarm in changes:
            self._add(names.CHANGES, 1, {**of_agent(key), names.SIGNAL: alarm.signal}, self._exemplar_of(None))

    def revise(self, runs: Sequence[Run], standings: Mapping[str, Standing]) -> None:
        """Count runs that changed after they had closed."""
        for run in runs:
            self._add(names.REVISIONS, run.weight, of_agent(standings[run.run_id].counted_as), self._exemplar_of(run))

    def _count(self, runs: Iterable[Counted]) -> None:
        """Raise the counters once for all of these."""
        found: dict[tuple[AgentKey, bool], Sums] = {}
        for run, key, calls, weight, exemplar in runs:
            own = key == run.key
            sums = found.get((key, own))
            if sums is None:
                sums = found[key, own] = Sums(key, self._ledger, own=own)
            sums.run(run.outcome.value, calls, weight, self._threshold, exemplar)
        for sums in found.values():
            sums.tell(self._counters)

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


def _counter(meter: Makes, spec: Instrument) -> Adds:
    return meter.create_counter(spec.name, spec.unit, spec.description)


def _histogram(meter: Makes, spec: Instrument) -> Records:
    return meter.create_histogram(
        spec.name, spec.unit, spec.description, explicit_bucket_boundaries_advisory=spec.boundaries
    )
