from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from otel_reliability.telemetry import names
from otel_reliability.telemetry.exposition import CounterSeries
from tests.otlp import traces_protobuf
from tests.real.waiting import until
from tests.service.running import Running, run_of, runs_of, serving

RUNS = "agent_reliability_runs_total{"


def lines(running: Running, start: str) -> list[str]:
    return [line for line in running.metrics().splitlines() if line.startswith(start)]


def risen(found: list[str]) -> list[str]:
    """The values of the counters that rose: those of every other outcome stand at 0."""
    return [value for line in found if (value := line.rpartition(" ")[2]) != "0"]


def test_a_counter_begins_at_0_when_its_first_run_closes() -> None:
    """And rises when the run is recorded, a minute later: a rate sees the first run too."""
    with serving() as running:
        running.post("traces", traces_protobuf(run_of()))
        before = lines(running, RUNS)
        running.clock.advance(5)
        running.writer_came_round()
        closed = lines(running, RUNS)
        calls = lines(running, "agent_reliability_tool_calls_total{")
        running.finalize()
        final = lines(running, RUNS)

    assert before == []
    assert {line.rpartition(" ")[2] for line in (*closed, *calls)} == {"0"}
    assert sorted(line.rpartition(" ")[2] for line in final) == ["0", "0", "1"]
    assert [line.rpartition(" ")[0] for line in final] == [
        line.rpartition(" ")[0] for line in closed
    ]


def test_what_counts_together_begins_together() -> None:
    with serving({"limits": {"agents": 1}}) as running:
        running.post(
            "traces", traces_protobuf([*runs_of(1), *runs_of(1, agent="refunds", first=5)])
        )
        running.clock.advance(5)
        running.writer_came_round()
        names = {
            line.partition('agent_name="')[2].partition('"')[0] for line in lines(running, RUNS)
        }

    assert names == {"support", "__other__"}


@pytest.mark.parametrize("has_state", [False, True])
def test_the_series_of_an_agent_end_with_it(has_state: bool, tmp_path: Path) -> None:
    with serving(
        {"limits": {"agent_idle": 3600}}, state=str(tmp_path) if has_state else None
    ) as running:
        running.send(runs_of(3))
        there = lines(running, "agent_reliability_")
        running.clock.advance(4_000)
        running.writer_came_round()
        gone = lines(running, "agent_reliability_")
        running.send(runs_of(1, first=50))
        back = lines(running, RUNS)

    assert len(there) > 30
    assert gone == []
    assert risen(back) == ["1"]


def test_the_series_of_an_agent_that_expired_do_not_come_back_with_the_state(
    tmp_path: Path,
) -> None:
    idle = {"limits": {"agent_idle": 3600}}
    with serving(idle, state=str(tmp_path)) as running:
        running.send(runs_of(3))
        assert lines(running, RUNS)
    with serving(idle, state=str(tmp_path), clock=running.clock) as running:
        assert lines(running, RUNS)
        running.clock.advance(4_000)
        running.writer_came_round()
        assert not lines(running, RUNS)
    with serving(idle, state=str(tmp_path), clock=running.clock) as running:
        running.writer_came_round()
        assert not lines(running, "agent_reliability_")


def test_the_series_of_all_others_never_end() -> None:
    with serving({"limits": {"agents": 1, "agent_idle": 3600}}) as running:
        running.send([*runs_of(1), *runs_of(1, agent="refunds", first=5)])
        running.clock.advance(4_000)
        until(lambda: len(risen(lines(running, RUNS))) == 1, "the other series to end")
        left = lines(running, RUNS)

    assert all("__other__" in line for line in left)


def test_what_becomes_final_within_a_second_is_recorded_together() -> None:
    with serving({"assembly": {"linger": "10ms", "reopen": "10ms"}}) as running:

        def counted(number: int, *seconds: float) -> list[str]:
            running.post("traces", traces_protobuf(runs_of(1, first=number)))
            for one in seconds:
                running.clock.advance(one)
                running.writer_came_round()
            return risen(lines(running, RUNS))

        told = [counted(1, 100, 0.3), counted(2, 0.3, 0.3), counted(3, 1.0), counted(4, 0.3, 0.3)]

    assert told == [["1"], ["1"], ["2"], ["2"]]
    series = next(running.service.registry.slices(names.RUNS, lambda _, __, series: series))
    assert [one.value for one in series if isinstance(one, CounterSeries) and one.value] == [4]


@pytest.mark.parametrize("has_state", [False, True])
def test_sessions_and_their_end_are_recorded(has_state: bool, tmp_path: Path) -> None:
    with serving(
        {"sessions": {"idle": "10m"}}, state=str(tmp_path) if has_state else None
    ) as running:
        spans = [
            replace(one, attributes={**one.attributes, "gen_ai.conversation.id": "7"})
            for one in runs_of(3)
        ]
        running.send(spans)
        running.finalize()

        assert (
            running.sum("agent_reliability_session_reliability_count", gen_ai_agent_name="support")
            == 1
        )
