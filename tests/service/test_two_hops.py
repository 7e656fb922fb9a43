"""Two services in a row: the first rebuilds runs, the second keeps the windows, and together they tell what one would."""

from __future__ import annotations

import re

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.record import RunRecord
from otel_reliability.model.span import RawSpan
from otel_reliability.service import emission as emitting
from otel_reliability.service.emission import Emission
from otel_reliability.service.run_logs import logs_of
from otel_reliability.sources.otlp_protobuf import decode_logs
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.otlp import ACCEPTED, Answer, Sender
from otel_reliability.testing import FakeClock, run, traces_protobuf
from tests.real.waiting import until
from tests.service.running import Running, run_of, runs_of, serving

KEY = "ab" * 32
LATE = run_of(3, ("search", "book", "pay"), start=30.0)


def agent_lines(text: str) -> list[str]:
    """What `/metrics` tells of agents; the times of exemplars and the like are not part of plain text."""
    return sorted(line for line in text.splitlines() if re.match(r"agent_reliability_\w+\{", line))


def sent(running: Running, spans: list[RawSpan]) -> None:
    """Send spans, one request."""
    assert running.post("traces", traces_protobuf(spans)).status == 200


def work(running: Running) -> None:
    """Runs of two agents, one of them revised by a late span."""
    sent(running, [*runs_of(2), *runs_of(4, ("refund",), "refunds", first=10), *LATE[:-1]])
    running.clock.advance(3)
    running.writer_came_round()
    sent(running, [LATE[-1]])
    running.clock.advance(3)
    running.writer_came_round()


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_two_services_tell_what_one_does(protocol: str) -> None:
    """The same series with the same values: gauges, counters, histograms; the first tells none of them."""
    engine = {"hash_key": KEY, "metrics": {"min_runs": 2}}
    with serving(engine) as alone:
        work(alone)
        alone.settle()
        expected = agent_lines(alone.metrics())
    with serving(engine) as second:
        door = second.url("grpc" if protocol == "grpc" else "http")
        with serving(engine, emit_runs={"endpoint": door, "protocol": protocol}) as first:
            work(first)
            first.settle()
            emission = first.service.outlets.emission
            assert emission is not None
            until(lambda: not len(emission), "the runs to be handed on")
            nothing = agent_lines(first.metrics())
            handed_on = first.sum("otel_reliability_exports_total", sink="runs", outcome="accepted")
        second.settle()
        found = agent_lines(second.metrics())
        taken = second.sum("otel_reliability_run_records_total", disposition="taken")

    assert nothing == []
    assert handed_on >= 1
    assert taken >= 15
    assert found == expected
    assert len(expected) > 100


def test_a_revision_is_handed_on() -> None:
    """The second service has the run as it ended up, once."""
    engine = {"hash_key": KEY}
    with serving(engine) as second, serving(engine, emit_runs={"endpoint": second.url("grpc")}) as first:
        work(first)
        first.settle()
        until(lambda: second.service.state.logs["run", ""] >= 15, "all records")
        second.settle()

        assert second.sum("agent_reliability_runs_total", gen_ai_agent_name="support") == 3
        assert second.sum("agent_reliability_run_revisions_total", gen_ai_agent_name="support") == 1
        assert second.sum("agent_reliability_tool_calls_total", gen_ai_tool_name="pay") == 1


def test_what_is_open_is_handed_on_at_the_end() -> None:
    """Stopping closes runs, and the last records leave before the end."""
    engine = {"hash_key": KEY}
    with serving(engine) as second:
        with serving(engine, emit_runs={"endpoint": second.url("grpc")}) as first:
            sent(first, run_of())
        until(lambda: second.service.state.logs["run", ""] >= 2, "the records of the end")
        second.settle()

        assert second.sum("agent_reliability_runs_total") == 1


class Sink(Sender):
    """Keeps what it is sent, and answers as it is told."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.bodies = list(answers), list[bytes]()

    def send(self, body: bytes, timeout: float | None = None) -> Answer:
        self.bodies.append(body)
        return self.answers.pop(0) if self.answers else ACCEPTED

    def close(self) -> None:
        """Nothing is open."""


def records_of(sink: Sink) -> list[RunRecord]:
    """The records that were sent."""
    return [record for body in sink.bodies for record in decode_logs(body).records]


def test_records_are_numbered_whatever_the_clock_does() -> None:
    """Of two records of one run the later has the greater time, also where the clock was set back."""
    clock, sink = FakeClock(100.0), Sink()
    emission = Emission(sink, clock.wall)
    emission(RunEvent(RunChange.CLOSED, run()), 0.0)
    clock.advance(-3600)
    emission(RunEvent(RunChange.REVISED, run(["a"]), run()), 0.0)
    emission(RunEvent(RunChange.SETTLED, run(["a"])), 0.0)
    emission.start()
    emission.stop(5)
    told = [record.told_ns for record in records_of(sink)]

    assert [record.change.value for record in records_of(sink)] == ["closed", "revised", "settled"]
    assert told == sorted(set(told))


def test_a_receiver_that_is_away_gets_everything_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost while it is away, and nothing is sent past it."""
    monkeypatch.setattr(emitting, "PAUSE", 0.01)
    sink = Sink(*[Answer(False, "unavailable", 0.0)] * 3)
    emission = Emission(sink, lambda: 1)
    for number in range(emitting.BATCH + 10):
        emission(RunEvent(RunChange.CLOSED, run(number=number)), 0.0)
    emission.start()
    until(lambda: not len(emission), "all to be taken")
    emission.stop(1)
    ids = [record.run.run_id for record in records_of(sink)]

    assert ids[-10:] == [f"run-{number}" for number in range(emitting.BATCH, emitting.BATCH + 10)]
    assert ids[: emitting.BATCH] == ids[emitting.BATCH : 2 * emitting.BATCH]
    assert emission.outcomes == {"unavailable": 3, "accepted": 2}


def test_it_says_when_a_receiver_goes_and_comes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once each, not at every try; and what is lost for good, each time."""
    monkeypatch.setattr(emitting, "PAUSE", 0.01)
    away, never = Answer(False, "unavailable", 0.0), Answer(False, "invalid_argument")
    emission = Emission(Sink(away, away, ACCEPTED, away, never), lambda: 1)
    caplog.set_level("INFO", "otel_reliability")
    for number in range(2 * emitting.BATCH):
        emission(RunEvent(RunChange.CLOSED, run(number=number)), 0.0)
    emission.start()
    until(lambda: not len(emission), "all to be done with")
    emission.stop(1)

    assert [(record.levelname, record.getMessage().partition(" (")[0]) for record in caplog.records] == [
        ("WARNING", "Runs are not taken"),
        ("INFO", "The receiver of runs answers again."),
        ("WARNING", "Runs are not taken"),
        ("INFO", "The receiver of runs answers again."),
        ("ERROR", "256 changes of runs are refused for good"),
    ]


def test_a_fault_in_sending_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are lost, and that is told like every other outcome."""
    monkeypatch.setattr(Guard, "loud", False)

    class Broken(Sink):
        def send(self, body: bytes, timeout: float | None = None) -> Answer:
            raise RuntimeError(body)

    emission = Emission(Broken(), lambda: 1)
    emission(RunEvent(RunChange.CLOSED, run()), 0.0)
    emission.start()
    emission.stop(5)

    assert emission.outcomes == {"fault": 1}
    assert len(emission) == 0


def test_what_is_refused_for_good_does_not_block_the_rest() -> None:
    """It is counted."""
    sink = Sink(Answer(False, "invalid_argument"))
    emission = Emission(sink, lambda: 1)
    for number in range(emitting.BATCH + 1):
        emission(RunEvent(RunChange.CLOSED, run(number=number)), 0.0)
    emission.start()
    emission.stop(5)

    assert emission.outcomes == {"invalid_argument": 1, "accepted": 1}
    assert len(emission) == 0


def test_there_is_a_ceiling_to_what_waits() -> None:
    """The oldest are lost, and counted."""
    emission = Emission(Sink(), lambda: 1, most=5)
    for number in range(8):
        emission(RunEvent(RunChange.CLOSED, run(number=number)), 0.0)

    assert (len(emission), emission.outcomes["overflow"]) == (5, 3)


def test_a_collector_can_route_what_is_handed_on() -> None:
    """The resource is the run's own service, and the agent's name is an attribute of the record."""
    one = run()
    other = one._replace(key=one.key._replace(service_name="bank", agent="teller"))
    body = logs_of([RunRecord(RunChange.CLOSED, each, 1) for each in (one, other, one)])
    groups = ExportLogsServiceRequest.FromString(body).resource_logs
    services = [
        {pair.key: pair.value.string_value for pair in group.resource.attributes}["service.name"] for group in groups
    ]
    agents = [
        [log.attributes[0].value.string_value for scope in group.scope_logs for log in scope.log_records]
        for group in groups
    ]

    assert services == ["shop", "bank"]
    assert agents == [["agent", "agent"], ["teller"]]
