"""Batches of runs are recorded as each run by itself would be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.model.run import AgentKey, Outcome, Run
from otel_reliability.model.tool_calls import ToolCalls
from otel_reliability.telemetry import recorder as recorder_module
from otel_reliability.telemetry.attributes import of_agent
from otel_reliability.telemetry.ledger import ToolLedger
from otel_reliability.telemetry.recorder import Recorder
from otel_reliability.telemetry.series import TRACES, Book
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


batch = st.tuples(made(), st.sampled_from([(), AGENTS[:1], AGENTS[:2], AGENTS]))
"""Runs, and the agents whose series go on after them, as far as any end."""


@given(st.lists(batch, min_size=1, max_size=4), st.sampled_from([None, 71.3]), st.integers(0, 3))
def test_a_batch_is_recorded_as_its_runs_are(
    batches: list[tuple[list[Run], tuple[str, ...]]], score: float | None, limit: int
) -> None:
    """Counters, buckets, sums, exemplars, and how many tools found no place; where series end and begin anew, too."""
    book, other = Book(lambda: 7), Book(lambda: 7)
    ledger, plainly = ToolLedger(SETTINGS, limit), ToolLedger(SETTINGS, limit)
    quick = Recorder(book, SETTINGS, ledger, TRACES)
    slow = PlainRecorder(other, plainly, SETTINGS.metrics.retry_threshold)
    for runs, staying in batches:
        standings = {one.run_id: standing(one, score) for one in runs}
        counted_as = {one.key: standings[one.run_id].counted_as for one in runs}
        for recorder in (quick, slow):
            recorder.begin(runs, counted_as.__getitem__)
        assert told(book) == told(other)
        for recorder in (quick, slow):
            recorder.record(runs, standings)
        assert told(book) == told(other)
        assert ledger.ceilings() == plainly.ceilings()
        if staying:
            keys = [AgentKey("", "shop", "test", agent) for agent in staying]
            for one, places in ((book, ledger), (other, plainly)):
                places.keep(keys)
                one.keep({tuple(of_agent(key).items()) for key in keys})
            quick.forget()


def test_a_series_that_ended_begins_anew() -> None:
    """Runs like those that had begun are looked at again, and only then."""
    book = Book(lambda: 7)
    recorder = Recorder(book, SETTINGS, ToolLedger(SETTINGS), TRACES)
    recorder.begin([run(["search"], 1)], lambda key: key)
    begun = told(book)
    book.keep([])
    recorder.begin([run(["search"], 2)], lambda key: key)
    assert told(book) == {}
    recorder.forget()
    recorder.begin([run(["search"], 3)], lambda key: key)
    assert told(book) == begun


def test_kinds_of_runs_are_remembered_up_to_a_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it all of them are forgotten, which costs a look at each, and changes no number."""
    monkeypatch.setattr(recorder_module, "MOST_BEGUN", 2)
    book, other = Book(lambda: 7), Book(lambda: 7)
    quick = Recorder(book, SETTINGS, ToolLedger(SETTINGS), TRACES)
    slow = PlainRecorder(other, ToolLedger(SETTINGS), SETTINGS.metrics.retry_threshold)
    for number in range(20):
        for recorder in (quick, slow):
            recorder.begin(
                [run(["search", "read"][: number % 3], number, outcome=list(Outcome)[number % 4])], lambda key: key
            )
        assert told(book) == told(other)
        assert sum(map(len, quick._begun.values())) <= 3


def test_what_is_remembered_of_batches_of_shared_traces_has_the_same_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet whose runs lie within others' has traces of several runs in every batch. Long runs count for more."""
    monkeypatch.setattr(recorder_module, "MOST_BEGUN", 60)
    recorder = Recorder(Book(lambda: 7), SETTINGS, ToolLedger(SETTINGS), TRACES)
    for number in range(40):
        path = ["search", *["read"] * number]
        recorder.begin([run(path, number, trace_id=trace_id(1)), run([], 100, trace_id=trace_id(1))], lambda key: key)
        assert sum(len(like[1][0]) for begun in recorder._begun.values() for like in begun) <= 60 + 41
