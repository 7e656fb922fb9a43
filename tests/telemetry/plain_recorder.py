"""What is recorded of runs, run by run and call by call, as one would write it down: what the quick way is held to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from otel_reliability.model.run import AgentKey, Run
from otel_reliability.model.span import TraceId
from otel_reliability.model.tool_calls import ToolCall
from otel_reliability.telemetry import names
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.series import SPECS, Book, trace_of
from otel_reliability.telemetry.standing import Standing
from otel_reliability.windows.fleet import Fleet


def standing_of(run: Run, fleet: Fleet) -> Standing:
    """The agent's score now, and how far the run's path is from the other runs of its group in the window."""
    counted_as, state = fleet.counted_as(run.key), fleet.agent(run.key)
    if state is None:
        return Standing(counted_as)
    window, row = next(iter(state.windows.values())), state.row(run.run_id)
    distance = None if row is None else window.path_distance(row).value
    return Standing(counted_as, window.reading("score").value, distance)


def plain_calls(runs: Sequence[Run]) -> Iterator[tuple[Run, list[ToolCall]]]:
    """Each run with the calls that its own agent took and that no run within it took, the innermost runs first."""
    taken: defaultdict[TraceId, Counter[ToolCall]] = defaultdict(Counter)
    for run in sorted(runs, key=lambda run: (not run.nested, run.end_ns - run.start_ns)):
        within, own = taken[run.trace_id], list[ToolCall]()
        named = [call for call in run.tool_calls or () if call.agent == run.key.agent]
        for call in named:
            same = call._replace(retry=False, repeat=False, chain=0)
            if within[same] > 0:
                within[same] -= 1
            else:
                own.append(call)
        if run.nested:
            within.update(call._replace(retry=False, repeat=False, chain=0) for call in named)
        yield run, own


class PlainRecorder:
    """The book after each run was told by itself, for each of its calls.

    The exemplar of a counter tells by how much a whole batch raised it, so that is added up here too.
    """

    def __init__(self, book: Book, ledger: ToolLedger, threshold: int) -> None:
        self._ledger, self._threshold = ledger, threshold
        self._counters = {spec.name: book.create_counter(spec.name, "", "") for spec in names.COUNTERS}
        self._histograms = {
            spec.name: book.create_histogram(spec.name, "", "", explicit_bucket_boundaries_advisory=None)
            for spec in names.HISTOGRAMS
        }

    def record(self, runs: Sequence[Run], standings: Mapping[str, Standing]) -> None:
        """Runs that will not change any more."""
        self._count(runs, lambda run: standings[run.run_id].counted_as, begin=False)
        for run, _ in plain_calls(runs):
            standing = standings[run.run_id]
            values = {
                names.PATH_DISTANCE: standing.path_distance,
                names.TOKEN_PRESSURE: run.token_pressure,
                names.RUN_RETRIES: None if run.tool_calls is None else sum(call.retry for call in run.tool_calls),
                names.RUN_SCORE: standing.score,
            }
            for spec, value in values.items():
                if value is not None and standing.counted_as == run.key:
                    self._histograms[spec.name].record(value, of_agent(run.key), trace_of(run))

    def begin(self, runs: Sequence[Run], counted_as: Callable[[AgentKey], AgentKey]) -> None:
        """Runs that have closed: their counters begin at 0."""
        self._count(runs, lambda run: counted_as(run.key), begin=True)

    def _count(self, runs: Sequence[Run], counted_as: Callable[[Run], AgentKey], *, begin: bool) -> None:
        placed: set[tuple[AgentKey, str]] = set()
        raised: dict[tuple[Instrument, AgentKey, tuple[tuple[str, str | bool], ...]], tuple[int, Run]] = {}
        for run, calls in plain_calls(runs):
            tools = [self._label(run, call.name, counted_as(run), placed) for call in calls]
            for spec, labels in self._of_run(run, calls, tools):
                place = (spec, counted_as(run), tuple(labels.items()))
                before = raised[place][0] if place in raised else 0
                raised[place] = (before + (0 if begin else run.weight), run)
        for (spec, key, labels), (number, run) in raised.items():
            trace = None if begin else trace_of(run)
            self._counters[spec.name].add(number, {**of_agent(key), **dict(labels)}, trace)

    def _of_run(
        self, run: Run, calls: Sequence[ToolCall], tools: Sequence[str]
    ) -> Iterator[tuple[Instrument, Mapping[str, str | bool]]]:
        yield names.RUNS, {names.OUTCOME: run.outcome.value}
        for call, tool in zip(calls, tools, strict=True):
            yield names.TOOL_CALLS, {names.TOOL: tool, names.OK: call.ok}
            if call.retry:
                yield names.RETRIES, {names.TOOL: tool}
        if any(call.chain >= self._threshold for call in calls):
            yield names.RETRY_EXPLOSIONS, {}

    def _label(self, run: Run, tool: str, counted_as: AgentKey, placed: set[tuple[AgentKey, str]]) -> str:
        """The tool as a label; who has no place asks at each call."""
        if counted_as != run.key:
            return names.OTHER
        if (run.key, tool) in placed:
            return tool
        found = self._ledger.name(run.key, tool)
        if found == tool:
            placed.add((run.key, tool))
        return found


def told(book: Book) -> dict[tuple[str, frozenset[tuple[str, str | bool]]], tuple[object, ...]]:
    """All that a book holds."""
    found: dict[tuple[str, frozenset[tuple[str, str | bool]]], tuple[object, ...]] = {}
    for name, instrument in book._instruments.items():
        assert name in SPECS
        for labels, cell in instrument.cells.items():
            found[name, frozenset(labels)] = tuple(
                getattr(cell, slot) for slot in type(cell).__slots__ if slot not in {"fields", "text"}
            )
    return found
