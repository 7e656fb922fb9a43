"""The same numbers in every deployment mode: a service, the span processor in the agents' process, and a recording."""

from __future__ import annotations

from pathlib import Path

from otel_reliability.metrics.sessions import SPECS as SESSIONS
from otel_reliability.model.run import Run
from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.report.recording import Recording, for_report
from otel_reliability.telemetry.exposition import FULL_NAMES, GAUGES
from otel_reliability.telemetry.prometheus import family_of
from tests.demo.agreement import agreement, collected, recorded
from tests.demo.bookshop import Bookshop, write
from tests.service.running import JSON, serving
from tests.telemetry.meters import Meters
from tests.telemetry.numbers import Numbers, prometheus_numbers

OF_SESSIONS = frozenset(family_of(GAUGES[FULL_NAMES[spec.name]]) for spec in SESSIONS)
"""The span processor receives no evaluations: they are sent to the service."""


def without_sessions(numbers: Numbers) -> Numbers:
    """The numbers of runs."""
    return {series: value for series, value in numbers.items() if series[0] not in OF_SESSIONS}


def test_every_deployment_mode_reports_the_same_numbers(tmp_path: Path) -> None:
    """Every gauge and counter of every agent; a number that was changed, is missing or is one too many is found."""
    path = tmp_path / "spans.jsonl"
    with serving() as running:
        settings = running.service.engine.settings
        meters = Meters()
        inside = ReliabilitySpanProcessor(settings, meter_provider=meters.provider)
        write(Bookshop(7, [inside], wall=running.clock.wall, clock=running.clock), path)
        for line in path.read_bytes().splitlines():
            signal = "logs" if b"resourceLogs" in line else "traces"
            assert running.post(signal, line, JSON).status == 200
        for _ in range(2):  # conversations are idle for half an hour before they close
            running.finalize()
        live = prometheus_numbers(running.metrics())
    runs: list[Run] = []
    recording = Recording(for_report(settings, settings.windows[0]), final=runs.extend)
    recording.read(path)
    expected = recorded(recording.close(), runs)
    inside.force_flush()
    within = collected(meters)

    found = agreement(live, expected)
    assert found.compared > 400
    assert found.differing == []
    assert agreement(without_sessions(within), without_sessions(expected)).differing == []

    first, second, *_ = (series for series in expected if series[0] == "agent_reliability_path_entropy")
    broken = {**expected, first: -1.0, ("agent_reliability_score", frozenset({("gen_ai_agent_name", "nobody")})): 50.0}
    del broken[second]
    planted = {(value, other is None) for _, value, other in agreement(broken, expected).differing}
    assert planted == {(-1.0, False), (None, False), (50.0, True)}
