from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry import _logs as logs
from opentelemetry import trace

from otel_reliability.change.alarm import Alarm, SignalChange, Summary, ToolShift
from otel_reliability.change.monitor import Change
from otel_reliability.config import ChangeSettings, Settings
from otel_reliability.model.run import AgentKey, CloseReason
from otel_reliability.telemetry import log_events
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.live import live_of
from otel_reliability.telemetry.log_events import EVENT_NAME, emit
from tests.report.build import run_spans
from tests.telemetry.loggers import Kept, kept_globally, loggers
from tests.telemetry.meters import Meters
from tests.telemetry.spans import provider as tracers

KEY = AgentKey("acme", "shop", "prod", "support", (("service.version", "2"),))
CALLS = SignalChange(
    "calls", 2e4, 201, 1_700_000_000_000_000_000, Summary(160, 5.2, 5), Summary(18, 12.1, 11)
)
PATH = SignalChange("path", 1e4, 203, 1_700_000_000_000_000_000, None, Summary(16, 0.4, 0.5))
ALARM = Alarm(
    218, "run-218", 1_700_000_500_000_000_000, (CALLS, PATH), (ToolShift("refund", 0.0, 0.64),)
)
CHANGE = Change(KEY, ALARM)


def test_a_change_is_told_by_names_and_numbers() -> None:
    kept = Kept()
    emit([CHANGE], loggers(kept))

    (record,) = (one.log_record for one in kept.emitted)
    assert (record.event_name, record.timestamp, record.severity_text) == (
        EVENT_NAME,
        ALARM.noticed_ns,
        "WARN",
    )
    assert dict(record.attributes) == {
        "service.namespace": "acme",
        "service.name": "shop",
        "deployment.environment.name": "prod",
        "gen_ai.agent.name": "support",
        "service.version": "2",
        "signal": "calls",
        "agent.reliability.change.signals": ("calls", "path"),
        "agent.reliability.change.observation": 218,
        "agent.reliability.change.since_observation": 201,
    }
    since = "about observation 201 (2023-11-14 22:13 UTC), noticed at observation 218"
    assert record.body["message"].startswith(f"changed {since}: ")
    before, after = [
        {"observations": n, "mean": mean, "median": median}
        for n, mean, median in ((160, 5.2, 5.0), (18, 12.1, 11.0))
    ]
    distances = {"observations": 16, "mean": 0.4, "median": 0.5}
    assert record.body["signals"] == [
        {
            "signal": "calls",
            "evidence": 2e4,
            "since_observation": 201,
            "before": before,
            "after": after,
        },
        {"signal": "path", "evidence": 1e4, "since_observation": 203, "after": distances},
    ]
    assert record.body["tools"] == [{"tool": "refund", "before": 0.0, "after": 0.64}]
    assert "run-218" not in json.dumps(record.body) + repr(record.attributes)


def test_an_event_belongs_to_no_span_that_happens_to_be_open() -> None:
    kept = Kept()
    with tracers().get_tracer("test").start_as_current_span("host"):
        emit([CHANGE, CHANGE], loggers(kept))
        assert trace.get_current_span().get_span_context().is_valid

    assert [one.log_record.trace_id for one in kept.emitted] == [0, 0]


def test_without_a_provider_nothing_happens() -> None:
    before = Guard.faults.copy()
    emit([CHANGE])
    emit([CHANGE], logs.NoOpLoggerProvider())
    assert Guard.faults == before


def test_a_processor_that_fails_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Kept):
        def on_emit(self, log_record: Any) -> None:
            raise OSError

    monkeypatch.setattr(Guard, "loud", False)
    before = Guard.faults["emitting a log event"]
    emit([CHANGE], loggers(Failing()))
    assert Guard.faults["emitting a log event"] == before + 1


def test_a_logger_that_takes_records_only_is_handed_one() -> None:
    """As other vendors' loggers, and the API before keywords."""
    taken: list[Any] = []

    class Old:
        def emit(self, record: Any) -> None:
            taken.append(record)

    class Provider(logs.NoOpLoggerProvider):
        def get_logger(self, name: str, *args: Any, **options: Any) -> Any:
            return Old()

    emit([CHANGE], Provider())
    assert [(one.event_name, one.attributes["signal"]) for one in taken] == [(EVENT_NAME, "calls")]
    assert log_events.event_of(CHANGE).body == taken[0].body


def test_in_process_a_change_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = kept_globally(monkeypatch)
    meters = Meters()
    live = live_of(meters.provider, Settings(change=ChangeSettings(runs_per_false_alarm=100)))
    for first, number, path in ((1, 80, "search reply"), (81, 40, "search escalate wait reply")):
        live.engine.receive(
            [one for n in range(first, first + number) for one in run_spans(n, path)]
        )
        live.flush(CloseReason.FLUSH, 5)

    (record,) = (one.log_record for one in kept.emitted)
    assert meters.look().value("changes", gen_ai__agent__name="support") == 1
    assert record.attributes["gen_ai.agent.name"] == "support"
    assert abs(record.attributes["agent.reliability.change.since_observation"] - 81) <= 3
    assert 81 < record.attributes["agent.reliability.change.observation"] < 120
    calls = next(one for one in record.body["signals"] if one["signal"] == "calls")
    assert calls["before"]["mean"] == pytest.approx(2, abs=0.2)
    assert calls["after"]["mean"] == pytest.approx(4, abs=0.2)
    assert {one["tool"] for one in record.body["tools"]} == {"escalate", "wait"}
