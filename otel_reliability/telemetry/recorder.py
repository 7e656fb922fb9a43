"""Settled runs → counters and histograms, each run once.

Under head sampling a run counts with its weight: it stands for that many. Histograms are not weighted, and say so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol, runtime_checkable

from otel_reliability.change.monitor import Change
from otel_reliability.config import Settings
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.telemetry import names
from otel_reliability.telemetry.alike import TOLD, Batch, Like, OfAgent, calls_in, front_of
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exemplar import CONTEXTS, Exemplars
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.own_calls import shared_traces
from otel_reliability.telemetry.standing import Standing
from otel_reliability.telemetry.sums import Adds, Attributes, Sums
from otel_reliability.windows.sessions import SessionEvent

MOST_BEGUN: Final = 262_144
"""Calls of the kinds of runs that are remembered to have begun, one more for each kind."""

_ID, _WEIGHT, _PRESSURE = (itemgetter(Run._fields.index(name)) for name in ("run_id", "weight", "token_pressure"))
_SCORE, _DISTANCE = (itemgetter(Standing._fields.index(name)) for name in ("score", "path_distance"))


class Records(Protocol):
    """A histogram: the SDK's, or the service's own."""

    def record(self, amount: float, attributes: Attributes | None, context: Any, /) -> None: ...


class Makes(Protocol):
    """A meter, as far as it is needed here."""

    def create_counter(self, name: str, unit: str, description: str, /) -> Adds: ...

    def create_histogram(
        self, name: str, unit: str, description: str, /, *, explicit_bucket_boundaries_advisory: Sequence[float] | None
    ) -> Records: ...


@runtime_checkable
class RecordsMany(Protocol):
    """A histogram that takes several measurements of one series at once."""

    def record_all(self, amounts: Sequence[float], attributes: Attributes, contexts: Sequence[Any], /) -> None: ...


class OneByOne:
    """A histogram of the SDK, which takes one measurement at a time."""

    def __init__(self, histogram: Records) -> None:
        self._histogram = histogram

    def record_all(self, amounts: Sequence[float], attributes: Attributes, contexts: Sequence[Any], /) -> None:
        """Record each."""
        for amount, context in zip(amounts, contexts, strict=True):
            self._histogram.record(amount, attributes, context)


class Recorder:
    """The counters and histograms of one meter. `exemplars` have the form that the meter takes them in."""

    def __init__(self, meter: Makes, settings: Settings, ledger: ToolLedger, exemplars: Exemplars = CONTEXTS) -> None:
        self._ledger, self._exemplars = ledger, exemplars
        self._begun: dict[AgentKey, set[Like]] = {}
        """What the runs of an agent were like whose counters have begun."""
        self._begun_calls = 0
        self._threshold = settings.metrics.retry_threshold
        self._standard = settings.telemetry.standard_metrics
        self._counters = {spec.name: _counter(meter, spec) for spec in names.COUNTERS}
        enabled = (*names.HISTOGRAMS, *names.STANDARD) if self._standard else names.HISTOGRAMS
        self._histograms = {spec.name: _histogram(meter, spec) for spec in enabled}

    def record(self, runs: Sequence[Run], standings: Mapping[str, Standing]) -> None:
        """Record runs that will not change any more. Runs of one trace that settle together must come together."""
        batch = Batch(runs)
        weights, exemplars = list(map(_WEIGHT, batch.runs)), self._exemplars.of(batch.runs)
        counted_as = {
            key: standings[batch.runs[ours.places[0]].run_id].counted_as for key, ours in batch.agents.items()
        }
        sums = self._sums_of(counted_as)
        for kind in batch.kinds:
            sums[kind.key].take(kind, sum(map(weights.__getitem__, kind.places)), kind.places[-1])
        for key, ours in batch.agents.items():
            if counted_as[key] == key:
                self._measure(ours, batch.runs, standings, exemplars)
        for one in dict.fromkeys(sums.values()):
            one.tell(self._counters, exemplars)

    def begin(self, runs: Sequence[Run], counted_as: Callable[[AgentKey], AgentKey]) -> None:
        """Begin, at 0, the counters that closed runs will raise once they are recorded: a rate would not see their first run."""
        if self._begun_calls > MOST_BEGUN:
            self.forget()
        batch = Batch(self._not_begun(runs, counted_as))
        counted = {key: counted_as(key) for key in batch.agents}
        sums = self._sums_of(counted)
        for kind in batch.kinds:
            sums[kind.key].take(kind, 0, 0)
        for one in dict.fromkeys(sums.values()):
            one.tell(self._counters, (self._exemplars.none,))
        for key, one in sums.items():
            if counted[key] == key:
                self._remember(key, one.placed)

    def forget(self) -> None:
        """Series have ended: those that come back begin anew."""
        self._begun.clear()
        self._begun_calls = 0

    def _remember(self, key: AgentKey, likes: Iterable[Like]) -> None:
        begun = self._begun.setdefault(key, set())
        for like in likes:
            if like not in begun:
                begun.add(like)
                self._begun_calls += 1 + calls_in(like)

    def _not_begun(self, runs: Sequence[Run], counted_as: Callable[[AgentKey], AgentKey]) -> Sequence[Run]:
        """Those of some runs that are unlike all that have begun, or share their trace: they may share calls."""
        shared, known = shared_traces(runs), dict[int, Collection[Like]]()
        found: list[Run] = []
        for run, (key, outcome, calls) in zip(runs, map(TOLD, runs), strict=True):
            begun = known.get(id(key))
            if begun is None:
                begun = known[id(key)] = self._begun.get(key, ()) if counted_as(key) == key else ()
            if not begun or (id(outcome), front_of(calls)) not in begun or (shared and run.trace_id in shared):
                found.append(run)
        return found

    def score(self, events: Sequence[SessionEvent]) -> None:
        """Record sessions that have just closed; one that is scored again was recorded then."""
        closed: defaultdict[AgentKey, list[SessionEvent]] = defaultdict(list)
        for event in events:
            if event.first:
                closed[event.key].append(event)
        for key, ours in closed.items():
            series, nothing = of_agent(key), (self._exemplars.none,) * len(ours)
            self._record(names.SESSION_RELIABILITY, [event.reliability for event in ours], series, nothing)
            self._record(names.SESSION_CONSISTENCY, [event.consistency for event in ours], series, nothing)

    def change(self, changes: Sequence[Change]) -> None:
        """Count changes of behaviour."""
        for key, alarm in changes:
            self._add(names.CHANGES, 1, {**of_agent(key), names.SIGNAL: alarm.signal}, self._exemplars.none)

    def revise(self, runs: Sequence[Run], standings: Mapping[str, Standing]) -> None:
        """Count runs that changed after they had closed."""
        for run, exemplar in zip(runs, self._exemplars.of(runs), strict=True):
            self._add(names.REVISIONS, run.weight, of_agent(standings[run.run_id].counted_as), exemplar)

    def _sums_of(self, counted_as: Mapping[AgentKey, AgentKey]) -> dict[AgentKey, Sums]:
        """What takes the runs of each agent. Agents beyond the ceiling share their sums."""
        made: dict[tuple[AgentKey, bool], Sums] = {}
        found: dict[AgentKey, Sums] = {}
        for key, counted in counted_as.items():
            own = counted == key
            if (counted, own) not in made:
                made[counted, own] = Sums(counted, self._ledger, self._threshold, own=own)
            found[key] = made[counted, own]
        return found

    def _measure(
        self, ours: OfAgent, batch: Sequence[Run], standings: Mapping[str, Standing], exemplars: Sequence[Any]
    ) -> None:
        """The histograms of one agent."""
        series, runs = of_agent(ours.key), [batch[at] for at in ours.places]
        standing, contexts = [standings[one] for one in map(_ID, runs)], [exemplars[at] for at in ours.places]
        self._record(names.PATH_DISTANCE, list(map(_DISTANCE, standing)), series, contexts)
        self._record(names.TOKEN_PRESSURE, list(map(_PRESSURE, runs)), series, contexts)
        self._record(names.RUN_RETRIES, ours.retries(batch), series, contexts)
        self._record(names.RUN_SCORE, list(map(_SCORE, standing)), series, contexts)
        if self._standard:
            calls = [None if run.tool_calls is None else len(run.tool_calls) for run in runs]
            self._record(names.STANDARD_DURATION, [run.duration_s for run in runs], series, contexts)
            self._record(names.STANDARD_INFERENCE_CALLS, [len(run.model_calls) for run in runs], series, contexts)
            self._record(names.STANDARD_TOOL_CALLS, calls, series, contexts)

    def _add(self, spec: Instrument, number: int, attributes: Attributes, context: Any) -> None:
        self._counters[spec.name].add(number, attributes, context)

    def _record(
        self, spec: Instrument, values: Sequence[float | None], attributes: Attributes, contexts: Sequence[Any]
    ) -> None:
        known = [value for value in values if value is not None]
        if not known:
            return
        if len(known) < len(values):
            contexts = [context for value, context in zip(values, contexts, strict=True) if value is not None]
        self._histograms[spec.name].record_all(known, attributes, contexts)


def _counter(meter: Makes, spec: Instrument) -> Adds:
    return meter.create_counter(spec.name, spec.unit, spec.description)


def _histogram(meter: Makes, spec: Instrument) -> RecordsMany:
    made = meter.create_histogram(
        spec.name, spec.unit, spec.description, explicit_bucket_boundaries_advisory=spec.boundaries
    )
    return made if isinstance(made, RecordsMany) else OneByOne(made)
