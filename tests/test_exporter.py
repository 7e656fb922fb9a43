from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanContext

from otel_reliability import exporter as exporter_module
from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.exporter import ReliabilitySpanExporter
from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.telemetry.guard import Guard
from tests.telemetry.meters import Meters, live_with_clock
from tests.telemetry.spans import Keeping, held, provider, run


class Host:
    """A host whose spans go to our exporter, and a clock to wind."""

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        self.live, self.meters, self.clock = live_with_clock(settings)
        self.exporter = ReliabilitySpanExporter(settings, meter_provider=self.meters.provider)
        self.batch = BatchSpanProcessor(self.exporter, schedule_delay_millis=60_000, **options)
        self.provider: TracerProvider = provider(self.batch)
        self.tracer = self.provider.get_tracer("test")
        self.look = self.meters.look


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.provider.shutdown()


def test_spans_behind_a_batch_processor_become_numbers(host: Host) -> None:
    for number in range(5):
        run(host.tracer, "search read" if number else "search")
    host.provider.force_flush()
    assert host.look().value("runs.open") == 5

    host.clock.advance(3)
    host.look()
    host.clock.advance(61)
    look = host.look()
    assert look.value("window.runs", gen_ai__agent__name="agent", service__name="shop") == 5
    assert look.value("agent.reliability.runs", outcome="completed") == 5
    assert look.values("tool_calls", "gen_ai.tool.name") == {"search": 5, "read": 4}


def test_deadlines_are_met_by_the_exports_themselves(host: Host) -> None:
    run(host.tracer)
    host.provider.force_flush()
    host.clock.advance(3)
    run(host.tracer)
    host.provider.force_flush()

    assert host.live.engine.closed == {"root": 1}


def test_shutdown_closes_every_run_and_then_nothing_is_taken() -> None:
    host = Host()
    run(host.tracer)
    host.provider.shutdown()
    look = host.look()

    assert look.value("agent.reliability.runs") == 1
    assert look.value("runs.closed", reason="shutdown") == 1
    assert host.exporter.export([]) is SpanExportResult.FAILURE
    host.exporter.shutdown()


def test_one_span_that_cannot_be_read_harms_no_other(host: Host) -> None:
    keeping = Keeping()
    run(provider(keeping).get_tracer("test"))
    resource = keeping.ended[0].resource
    bad = ReadableSpan("bad", context=SpanContext(1, 1, False), resource=resource, attributes={})
    assert host.exporter.export([bad, *keeping.ended]) is SpanExportResult.SUCCESS
    host.exporter.force_flush()
    look = host.look()

    assert look.value("agent.reliability.runs") == 1
    assert look.value("spans", disposition="malformed", reason="start_time") == 1
    assert look.value("spans", disposition="received") == 4


def test_a_span_by_two_doors_counts_once(host: Host) -> None:
    host.provider.add_span_processor(ReliabilitySpanProcessor(meter_provider=host.meters.provider))
    run(host.tracer)
    host.provider.force_flush()
    host.exporter.force_flush()
    look = host.look()

    assert look.value("agent.reliability.runs") == look.value("window.runs") == 1
    assert look.value("spans", disposition="duplicate") == 3


def test_what_the_batch_processor_dropped_leaves_incomplete_runs() -> None:
    """Spans that never came cannot be seen, but what hangs on them is marked: it stays out of path
    metrics.
    """
    host = Host(max_queue_size=2, max_export_batch_size=2)
    keeping = Keeping()
    run(provider(keeping).get_tracer("test"), "search read reply")
    host.exporter.export(keeping.ended[:3])
    host.exporter.force_flush()
    look = host.look()

    assert look.value("runs.incomplete") == 1
    assert look.value("distinct_paths") is None
    host.provider.shutdown()


def test_a_busy_engine_refuses_and_counts(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_module, "WAIT_TIMEOUT_S", 0.01)
    keeping = Keeping()
    run(provider(keeping).get_tracer("test"))
    with held(host.live.engine):
        assert host.exporter.export(keeping.ended) is SpanExportResult.SUCCESS
        assert not host.exporter.force_flush(10)

    assert host.look().value("spans", disposition="refused", reason="busy") == 3


def test_a_bug_of_ours_is_kept_from_the_sdk(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: Any, **__: Any) -> Any:
        raise RuntimeError("planted")

    with monkeypatch.context() as patch:
        for name in ("receive", "flush", "tick"):
            patch.setattr(host.live.engine, name, planted)
        with pytest.raises(RuntimeError, match="planted"):
            host.exporter.export([])
        patch.setattr(Guard, "loud", False)
        assert host.exporter.export([]) is SpanExportResult.SUCCESS
        assert host.exporter.force_flush() is False


def test_settings_come_as_keyword_arguments() -> None:
    exporter = ReliabilitySpanExporter(
        meter_provider=Meters().provider, window=50, metrics={"min_runs": 9}
    )
    settings = exporter._live.settings

    assert (settings.windows[0].last, settings.metrics.min_runs) == (50, 9)
    with pytest.raises(ConfigurationError, match="windw"):
        ReliabilitySpanExporter(meter_provider=Meters().provider, windw=50)
