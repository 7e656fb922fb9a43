"""Final runs → counters and histograms, each run once.

Under head sampling a run counts with its weight: it stands for so many. Histograms are not
weighted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.monitor import Change
from otel_reliability.config import Settings
from otel_reliability.model.reading import NO_DATA
from otel_reliability.model.run import AgentKey, Run, ToolCall
from otel_reliability.model.span import TraceId
from otel_reliability.read_view import ReadView
from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import of_agent
from otel_reliability.telemetry.instruments import Attributes
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.names import Instrument
from otel_reliability.watch import Excess
from otel_reliability.windows.agents import LateOutcome
from otel_reliability.windows.sessions import SessionEvent


class Sink(Protocol):
    """Counters and histograms, of the user's MeterProvider or of the service's registry. `run` is
    the exemplar.
    """

    def add(
        self, spec: Instrument, amount: int, attributes: Attributes, run: Run | None = None
    ) -> None: ...

    def record(
        self, spec: Instrument, amount: float, attributes: Attributes, run: Run | None = None
    ) -> None: ...


class RunReadings(NamedTuple):
    """Readings of the agent's first window when a run is recorded; None: not enough data.
    `counted_as` has its counters.
    """

    counted_as: AgentKey
    score: float | None = None
    path_distance: float | None = None


def readings_of(runs: Iterable[Run], view: ReadView) -> dict[str, RunReadings]:
    """Return the readings of several runs, by run id."""
    agents: dict[AgentKey, list[Run]] = {}
    for run in runs:
        agents.setdefault(run.key, []).append(run)
    found: dict[str, RunReadings] = {}
    for key, own in agents.items():
        state = view.agent(key)
        counted_as = view.counted_as(key)
        if state is None:
            found.update((run.run_id, RunReadings(counted_as)) for run in own)
            continue
        window = state.first_window
        score = window.reading("score").value
        rows = [row for run in own if (row := state.row(run.run_id, run.end_ns)) is not None]
        distances = dict(
            zip([row.run_id for row in rows], window.path_distances(rows), strict=True)
        )
        for run in own:
            distance = distances.get(run.run_id, NO_DATA).value
            found[run.run_id] = RunReadings(counted_as, score, distance)
    return found


_RATED: Final = frozenset({"success", "failure"})
"""Outcomes that rates are made of. Both series of an agent begin at 0 with its first run: a rate
would miss a first failure that begins one.
"""


class Recorder:
    """Records runs, sessions and changes in a sink."""

    def __init__(self, sink: Sink, settings: Settings, ledger: ToolLedger) -> None:
        self._sink = sink
        self._ledger = ledger
        self._threshold = settings.metrics.retry_threshold
        self._standard = settings.telemetry.standard_metrics
        self._settings = settings

    def record(self, runs: Sequence[Run], readings: Mapping[str, RunReadings]) -> None:
        """Record runs that are final. Runs of one trace that become final together must come
        together.
        """
        for run, calls in own_calls(runs):
            reading = readings[run.run_id]
            agent = of_agent(reading.counted_as)
            tools = self._count(run, calls, reading.counted_as, agent, run.weight)
            if reading.counted_as == run.key:
                self._measure(run, reading, agent)
                if self._standard:
                    self._measure_standard(run, calls, tools, agent)

    def begin(self, runs: Sequence[Run], counted_as: Callable[[AgentKey], AgentKey]) -> None:
        """Begin, at 0, the counters that closed runs will raise when they are final: else a rate
        misses their first run.
        """
        for run, calls in own_calls(runs):
            key = counted_as(run.key)
            self._count(run, calls, key, of_agent(key), 0)

    def revise(self, runs: Iterable[Run], readings: Mapping[str, RunReadings]) -> None:
        """Count runs that changed after they had closed."""
        for run in runs:
            self._sink.add(
                names.REVISIONS, run.weight, of_agent(readings[run.run_id].counted_as), run
            )

    def late(self, found: Iterable[LateOutcome]) -> None:
        """Count outcomes that became known after their runs were final."""
        for key, outcome, weight in found:
            attributes = {**of_agent(key), names.OUTCOME: outcome.value}
            self._sink.add(names.LATE_OUTCOMES, weight, attributes)

    def score(self, events: Iterable[SessionEvent]) -> None:
        """Record sessions when they close, and not when they are scored again."""
        for event in events:
            if event.first:
                agent = of_agent(event.key)
                self._record(names.SESSION_RELIABILITY, event.reliability, agent)
                self._record(names.SESSION_CONSISTENCY, event.consistency, agent)

    def change(self, changes: Iterable[Change]) -> None:
        """Count changes of behaviour; change points are none."""
        for key, found in changes:
            if isinstance(found, Alarm):
                self._sink.add(names.CHANGES, 1, {**of_agent(key), names.SIGNAL: found.signal})

    def exceed(self, excesses: Iterable[Excess]) -> None:
        """Count open runs that exceeded a bound."""
        for excess in excesses:
            self._sink.add(names.RUN_EXCESS, 1, {**of_agent(excess.agent), names.KIND: excess.kind})

    def _counts_errors(self, agent: str) -> bool:
        """Return whether the agent's objective is one on errors."""
        found = self._settings.objective_of(agent)
        return found is not None and found.errors is not None

    def _count(
        self,
        run: Run,
        calls: Sequence[ToolCall],
        counted_as: AgentKey,
        agent: Attributes,
        weight: int,
    ) -> dict[str, str]:
        """Raise the counters of a run by its weight per run, call and retry; return the attribute
        for each tool. `agent` are the attributes of `counted_as`.
        """
        exemplar = run if weight else None
        add = self._sink.add
        for outcome in _RATED - {run.outcome.value}:
            add(names.RUNS, 0, {**agent, names.OUTCOME: outcome})
        add(names.RUNS, weight, {**agent, names.OUTCOME: run.outcome.value}, exemplar)
        if self._counts_errors(counted_as.agent):
            add(names.RUN_ERRORS, weight if run.ended_in_error else 0, agent, exemplar)
        numbers = defaultdict[tuple[str, bool], int](int)
        retries = defaultdict[str, int](int)
        names_of = dict[str, str]()
        is_own = counted_as == run.key
        for call in calls:
            tool = names_of[call.name] = (
                self._ledger.name(counted_as, call.name) if is_own else names.OTHER
            )
            numbers[tool, call.ok] += 1
            if call.retry:
                retries[tool] += 1
        for (tool, ok), number in numbers.items():
            add(
                names.TOOL_CALLS,
                number * weight,
                {**agent, names.TOOL: tool, names.OK: ok},
                exemplar,
            )
        for tool, number in retries.items():
            add(names.RETRIES, number * weight, {**agent, names.TOOL: tool}, exemplar)
        if calls and max([call.chain for call in calls]) >= self._threshold:
            add(names.RETRY_EXPLOSIONS, weight, agent, exemplar)
        return names_of

    def _measure(self, run: Run, reading: RunReadings, agent: Attributes) -> None:
        self._record(names.PATH_DISTANCE, reading.path_distance, agent, run)
        self._record(names.TOKEN_PRESSURE, run.token_pressure, agent, run)
        self._record(names.RUN_RETRIES, run.retries, agent, run)
        self._record(names.RUN_SCORE, reading.score, agent, run)
        self._record(names.RUN_DURATION, run.duration_s, agent, run)
        self._record(names.RUN_TOKENS, run.tokens, agent, run)
        self._record(names.RUN_COST, run.cost, agent, run)

    def _measure_standard(
        self, run: Run, own: Sequence[ToolCall], tools: Mapping[str, str], agent: Attributes
    ) -> None:
        """Record the metrics of the semantic conventions: of the run, and of the calls that its own
        agent made.
        """
        calls = run.tool_calls
        self._record(names.STANDARD_DURATION, run.duration_s, agent, run)
        self._record(names.STANDARD_INFERENCE_CALLS, len(run.model_calls), agent, run)
        self._record(names.STANDARD_TOOL_CALLS, None if calls is None else len(calls), agent, run)
        for call in own:
            seconds = (call.end_ns - call.start_ns) / 1e9
            self._record(
                names.STANDARD_TOOL_DURATION, seconds, {**agent, names.TOOL: tools[call.name]}, run
            )

    def _record(
        self, spec: Instrument, value: float | None, agent: Attributes, run: Run | None = None
    ) -> None:
        if value is not None:
            self._sink.record(spec, value, agent, run)


def own_calls(runs: Iterable[Run]) -> Iterator[tuple[Run, list[ToolCall]]]:
    """Yield each run, nested and short ones first, with the calls that its own agent made and that
    no run inside it made.

    A run has the steps of its nested runs too. Nested runs become final together with the run above
    them, so one batch holds all runs that share a call. Of an agent that calls itself, the inner
    run, which is the shorter one, has the call.
    """
    made: defaultdict[TraceId, Counter[ToolCall]] = defaultdict(Counter)
    for run in sorted(runs, key=lambda run: (not run.nested, run.end_ns - run.start_ns)):
        agent = run.key.agent
        inside = made.get(run.trace_id)
        calls = [call for call in run.tool_calls or () if call.agent == agent]
        own = [call for call in calls if not _remove(call, inside)] if inside else calls
        if run.nested:
            made[run.trace_id].update(map(_without_marks, calls))
        yield run, own


def _without_marks(call: ToolCall) -> ToolCall:
    """Return the call as both runs have it: whether it is a retry depends on the calls before it in
    a run.
    """
    return replace(call, retry=False, repeat=False, chain=0)


def _remove(call: ToolCall, calls: Counter[ToolCall]) -> bool:
    same = _without_marks(call)
    if calls[same] <= 0:
        return False
    calls[same] -= 1
    return True
