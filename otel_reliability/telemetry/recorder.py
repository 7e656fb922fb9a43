"""Settled runs → counters and histograms, each run once.

Under head sampling a run counts with its weight: it stands for that many. Histograms are not weighted, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from otel_reliability.change.monitor import Change
from otel_reliability.config import Settings
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.exemplar import context_of
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.own_calls import own_calls
from otel_reliability.telemetry.standing import Standing
from otel_reliability.telemetry.sums import Adds, Attributes, Like, Sums, calls_in, like_of
from otel_reliability.windows.sessions import SessionEvent

MOST_BEGUN: Final = 262_144
"""Calls of the kinds of runs that are remembered to have begun, one more for each kind."""


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


class _Together:
    """The runs of one agent in a batch: its sums, and the places of its runs where they are measured."""

    __slots__ = ("measured", "places", "sums")

    def __init__(self, sums: Sums, *, measured: bool) -> None:
        self.sums, self.measured = sums, measured
        self.places: list[int] = []


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
        batch, exemplars = own_calls(runs), list[Any]()
        sums, found = dict[tuple[AgentKey, bool], Sums](), dict[AgentKey, _Together]()
        for at, (run, calls) in enumerate(batch):
            together = found.get(run.key)
            if together is None:
                counted_as = standings[run.run_id].counted_as
                together = found[run.key] = self._together(run.key, counted_as, sums)
            together.sums.run(at, run.outcome, calls, run.weight)
            together.places.append(at)
            exemplars.append(self._exemplar_of(run))
        for key, together in found.items():
            if together.measured:
                ours = [batch[at][0] for at in together.places]
                self._measure(key, ours, standings, [exemplars[at] for at in together.places])
        for one in sums.values():
            one.tell(self._counters, exemplars)

    def begin(self, runs: Sequence[Run], counted_as: Callable[[AgentKey], AgentKey]) -> None:
        """Begin, at 0, the counters that closed runs will raise once they are recorded: a rate would not see their first run."""
        if self._begun_calls > MOST_BEGUN:
            self.forget()
        batch = runs if _share_traces(runs) else self._not_begun(runs, counted_as)
        sums, found = dict[tuple[AgentKey, bool], Sums](), dict[AgentKey, _Together]()
        for run, calls in own_calls(batch):
            together = found.get(run.key)
            if together is None:
                together = found[run.key] = self._together(run.key, counted_as(run.key), sums)
            together.sums.run(0, run.outcome, calls, 0)
        nothing = [self._exemplar_of(None)]
        for one in sums.values():
            one.tell(self._counters, nothing)
        for key, together in found.items():
            if together.measured:
                self._remember(key, together.sums.placed)

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
        """Those of some runs, each of a trace of its own, that are unlike all that have begun."""
        found, known = list[Run](), dict[AgentKey, Collection[Like]]()
        for run in runs:
            begun = known.get(run.key)
            if begun is None:
                own = counted_as(run.key) == run.key
                begun = known[run.key] = self._begun.get(run.key, ()) if own else ()
            if not begun or like_of(run) not in begun:
                found.append(run)
        return found

    def score(self, events: Sequence[SessionEvent]) -> None:
        """Record sessions that have just closed; one that is scored again was recorded then."""
        for event in events:
            if event.first:
                series, contexts = of_agent(event.key), [self._exemplar_of(None)]
                self._record(names.SESSION_RELIABILITY, [event.reliability], series, contexts)
                self._record(names.SESSION_CONSISTENCY, [event.consistency], series, contexts)

    def change(self, changes: Sequence[Change]) -> None:
        """Count changes of behaviour."""
        for key, alarm in changes:
            self._add(names.CHANGES, 1, {**of_agent(key), names.SIGNAL: alarm.signal}, self._exemplar_of(None))

    def revise(self, runs: Sequence[Run], standings: Mapping[str, Standing]) -> None:
        """Count runs that changed after they had closed."""
        for run in runs:
            self._add(names.REVISIONS, run.weight, of_agent(standings[run.run_id].counted_as), self._exemplar_of(run))

    def _together(self, key: AgentKey, counted_as: AgentKey, sums: dict[tuple[AgentKey, bool], Sums]) -> _Together:
        """What takes the runs of an agent. Agents beyond the ceiling share their sums, and are not measured."""
        own = counted_as == key
        known = sums.get((counted_as, own))
        if known is None:
            known = sums[counted_as, own] = Sums(counted_as, self._ledger, self._threshold, own=own)
        return _Together(known, measured=own)

    def _measure(
        self, key: AgentKey, runs: Sequence[Run], standings: Mapping[str, Standing], contexts: Sequence[Any]
    ) -> None:
        """The histograms of one agent."""
        series, standing = of_agent(key), [standings[run.run_id] for run in runs]
        self._record(names.PATH_DISTANCE, [one.path_distance for one in standing], series, contexts)
        self._record(names.TOKEN_PRESSURE, [run.token_pressure for run in runs], series, contexts)
        self._record(names.RUN_RETRIES, [run.retries for run in runs], series, contexts)
        self._record(names.RUN_SCORE, [one.score for one in standing], series, contexts)
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


def _share_traces(runs: Sequence[Run]) -> bool:
    return len({run.trace_id for run in runs}) < len(runs)


def _counter(meter: Makes, spec: Instrument) -> Adds:
    return meter.create_counter(spec.name, spec.unit, spec.description)


def _histogram(meter: Makes, spec: Instrument) -> RecordsMany:
    made = meter.create_histogram(
        spec.name, spec.unit, spec.description, explicit_bucket_boundaries_advisory=spec.boundaries
    )
    return made if isinstance(made, RecordsMany) else OneByOne(made)
