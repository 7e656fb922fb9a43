from __future__ import annotations

import pytest
from msgspec.structs import replace

from otel_reliability.config import AssemblySettings, Settings
from otel_reliability.kafka.traces import Traces
from otel_reliability.model.span import AgentSpan, Evaluation, Notes
from otel_reliability.testing import agent, at, model, tool, trace_id
from tests.kafka.streams import Assembling, MemoryValues
from tests.laws.arrival import after

SETTINGS = Settings(
    assembly=AssemblySettings(linger=2.0, idle_timeout=20.0, reopen=60.0), hash_key="00" * 16
)
RUN = (tool(2, 1, "search"), agent(1))
OF_TRACE = Evaluation("success", 1.0, None, at(0), trace_id(1))
OF_SPAN = replace(OF_TRACE, span_id=RUN[0].span_id)


def changes(stage: Assembling) -> list[str]:
    return [one.change.value for one in stage.records]


def test_a_run_is_told_when_its_root_has_arrived_and_final_when_it_can_change_no_more() -> None:
    """After `linger`, and `reopen` later; a span in between revises it, with a greater time."""
    stage = Assembling(SETTINGS)
    stage.take(RUN)
    stage.pass_time(1.0)
    assert changes(stage) == []
    stage.pass_time(2.0)
    assert changes(stage) == ["closed"]
    stage.take([tool(3, 1, "book")])
    stage.pass_time(100.0)

    assert changes(stage) == ["closed", "revised", "final"]
    assert [one.run.path for one in stage.records] == [
        ("search",),
        ("book", "search"),
        ("book", "search"),
    ]
    times = [one.revision for one in stage.records]
    assert times == sorted(set(times))


def test_a_run_whose_root_never_comes_is_told_when_it_is_idle() -> None:
    stage = Assembling(SETTINGS)
    stage.take([RUN[0]])
    stage.pass_time(10.0)
    assert changes(stage) == []
    stage.pass_time(15.0)

    assert changes(stage) == ["closed"]
    assert stage.records[0].run.incomplete


def test_a_run_that_changes_its_agent_is_withdrawn_from_the_old_one() -> None:
    stage = Assembling(SETTINGS)
    stage.take([agent(1, None, "first")])
    stage.pass_time(5.0)
    stage.take([agent(1, None, "second", end=9.0)])
    stage.pass_time(100.0)

    told = [(one.change.value, one.run.key.agent) for one in stage.records]
    assert told == [
        ("closed", "first"),
        ("withdrawn", "first"),
        ("revised", "second"),
        ("final", "second"),
    ]


def test_what_comes_late_or_twice_is_known_to_whoever_has_the_partition() -> None:
    """For a quarter of an hour; then nothing of the trace is stored any more."""
    stage = Assembling(SETTINGS, partitions=1)
    stage.take(RUN)
    stage.pass_time(100.0)
    stage.take_over(0)
    stage.take([*RUN, tool(9, 1, "late")])
    stage.pass_time(100.0)
    accounts = stage.workers[0].spans
    assert changes(stage) == ["closed", "final"]
    assert (accounts["duplicate", ""], accounts["late", ""]) == (2, 1)
    assert len(stage.stores[0].kept) == 2
    stage.pass_time(1_000.0)

    assert len(stage.stores[0].kept) == 1
    assert len(stage.workers[0]) == 0


@pytest.mark.parametrize("pause", [0.0, 10.0, 500.0])
@pytest.mark.parametrize(("early", "later"), [(OF_TRACE, OF_SPAN), (OF_SPAN, OF_TRACE)])
def test_an_evaluation_that_waits_for_its_run_outlives_its_worker(
    early: Evaluation, later: Evaluation, pause: float
) -> None:
    """Of two that differ in nothing but their span the same one counts, whichever comes first, as
    in one process.
    """
    stage = Assembling(SETTINGS, partitions=1)
    stage.take([early])
    stage.pass_time(pause)
    stage.take_over(0)
    stage.take([*RUN, later])
    stage.pass_time(100.0)
    alone = after([(0.0, [early]), (pause, [*RUN, later])], settings=SETTINGS)

    assert [one.run.evaluations for one in stage.records] == [(OF_SPAN,), (OF_SPAN,)]
    assert [run.evaluations for run in alone.runs.values()] == [(OF_SPAN,)]


def test_an_evaluation_whose_run_never_comes_is_stored_as_long_as_it_waits() -> None:
    stage = Assembling(SETTINGS, partitions=1)
    stage.take([OF_TRACE])
    stage.pass_time(1_000.0)

    assert stage.workers[0].losses["evaluation", "no_run"] == 1
    assert len(stage.stores[0].kept) == 1


def test_what_crosses_traces_is_counted() -> None:
    """Links of hops, keys of runs, and judgements without a trace; the rest of each is as if they
    were not there.
    """
    traces = Traces(SETTINGS, MemoryValues())
    hop = replace(agent(1), link=(trace_id(7), b"12345678"))
    keyed: AgentSpan = replace(model(2), notes=Notes(run_key="ab" * 16))
    unknown = Evaluation("success", 1.0, None, 1, response_id="r")
    nobodys = Evaluation("success", 1.0, None, 1)
    told = traces.take([hop, keyed], [unknown, nobodys], 1.0)
    told += [*traces.tick(10.0), *traces.tick(100.0)]

    assert traces.apart == {"link": 1, "run_key": 1, "response_id": 1, "no_trace": 1}
    assert traces.records == {"closed": 1, "final": 1}
    assert len(told) == 2


def test_a_damaged_part_costs_what_it_held() -> None:
    stage = Assembling(SETTINGS, partitions=1)
    stage.take([RUN[0]])
    stage.take([RUN[1]])
    kept = stage.stores[0].kept
    place = next(place for place, value in kept.items() if b"search" in value)
    kept[place] = kept[place][:-1] + bytes([kept[place][-1] ^ 1])
    stage.take_over(0)
    stage.pass_time(100.0)

    assert changes(stage) == ["closed", "final"]
    assert stage.records[0].run.path == ()
    assert stage.workers[0].losses["state", "damaged"] >= 1


def test_a_trace_of_a_hundred_thousand_spans_ends_at_the_limit() -> None:
    small = replace(SETTINGS, limits=replace(SETTINGS.limits, span_limit=100))
    stage = Assembling(small, partitions=1)
    stage.take([agent(1)])
    for begin in range(0, 1_000, 100):
        stage.take([tool(2 + number, 1, "t") for number in range(begin, begin + 100)])
    stage.take([replace(one, trace_id=trace_id(2)) for one in RUN])
    stage.pass_time(100.0)

    assert {one.run.closed_by.value for one in stage.records} == {"span_limit", "root"}
    assert stage.workers[0].spans["refused", "span_limit"] == 901
