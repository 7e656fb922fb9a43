"""Batches of runs are recorded as each run by itself would be."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.model.run import AgentKey, Outcome, Run
from otel_reliability.model.tool_calls import ToolCalls
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.recorder import Recorder
from otel_reliability.telemetry.series import Book, trace_of
from otel_reliability.telemetry.standing import Standing
from otel_reliability.testing import at, call, run, span_id, trace_id
from otel_reliability.windows.fleet import OTHER_AGENT
from tests.telemetry.plain_recorder import PlainRecorder, told

AGENTS = ("agent", "another", "third")
TOOLS = ("search", "read", "pay", "__other__")
SETTINGS = replace(Settings(), limits=LimitSettings(tools=2))

calls = st.lists(
    st.builds(
        call, st.sampled_from(TOOLS), st.integers(0, 2), ok=st.booleans(), retry=st.booleans(), chain=st.integers(0, 4),
        agent=st.sampled_from(AGENTS),
    ),
    max_size=5,
)  # fmt: skip
plain = st.lists(st.sampled_from(TOOLS), max_size=4)
"""Paths of calls that all went well, as most are."""


@st.composite
def made(draw: st.DrawFn) -> list[Run]:
    """Runs of several agents, some of one trace, some within others; their calls as objects or as columns."""
    found: list[Run] = []
    for number in range(draw(st.integers(1, 8))):
        agent = draw(st.sampled_from(AGENTS))
        well = [call(name, second, agent=agent) for second, name in enumerate(draw(plain))]
        own = draw(st.one_of(st.just(well), calls))
        took = None if draw(st.integers(0, 5)) == 0 else ToolCalls.of(own) if draw(st.booleans()) else tuple(own)
        found.append(
            run(
                [],
                number,
                key=AgentKey("", "shop", "test", agent),
                tool_calls=took,
                trace_id=trace_id(draw(st.integers(0, 5))),
                root_span_id=draw(st.sampled_from([None, span_id(number)])),
                nested=draw(st.booleans()),
                outcome=draw(st.sampled_from(list(Outcome))),
                weight=draw(st.integers(1, 3)),
                end_ns=at(100.0 * number + draw(st.integers(1, 4))),
                token_pressure=draw(st.sampled_from([None, 0.1, 0.7])),
            )
        )
    return found


def standing(one: Run, score: float | None) -> Standing:
    """The third agent is beyond the ceiling."""
    if one.key.agent == AGENTS[2]:
        return Standing(OTHER_AGENT)
    return Standing(one.key, score, None if one.weight == 3 else one.weight / 3)


@given(st.lists(made(), min_size=1, max_size=3), st.sampled_from([None, 71.3]), st.integers(0, 3))
def test_a_batch_is_recorded_as_its_runs_are(batches: list[list[Run]], score: float | None, limit: int) -> None:
    """Counters, buckets, sums, exemplars, and how many tools found no place."""
    book, other = Book(lambda: 7), Book(lambda: 7)
    ledger, plainly = ToolLedger(SETTINGS, limit), ToolLedger(SETTINGS, limit)
    quick = Recorder(book, SETTINGS, ledger, trace_of)
    slow = PlainRecorder(other, plainly, SETTINGS.metrics.retry_threshold)
    for runs in batches:
        standings = {one.run_id: standing(one, score) for one in runs}
        counted_as = {one.key: standings[one.run_id].counted_as for one in runs}
        for recorder in (quick, slow):
            recorder.begin(runs, counted_as.__getitem__)
        assert told(book) == told(other)
        for recorder in (quick, slow):
            recorder.record(runs, standings)
        assert told(book) == told(other)
        assert ledger.ceilings() == plainly.ceilings()
