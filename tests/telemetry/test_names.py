from __future__ import annotations

import re

import pytest

from otel_reliability import metrics
from otel_reliability.telemetry import names
from otel_reliability.telemetry.names import Instrument

ALL = (*names.gauges(), *names.COUNTERS, *names.HISTOGRAMS, *names.STANDARD, *names.SELF, *names.SERVICE, *names.KAFKA)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_an_instrument_is_named_as_opentelemetry_asks(spec: Instrument) -> None:
    """Lower case, dots between namespaces, no unit in the name; a unit in braces or seconds, and a sentence."""
    assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+", spec.name)
    assert re.fullmatch(r"\{[a-z_]+\}|s", spec.unit)
    assert not spec.name.endswith((".count", ".total", "_total", "_seconds"))
    assert len(spec.description) > 15
    assert spec.description.endswith(".")


def test_every_window_metric_has_its_gauge() -> None:
    """A new metric is emitted because it is in the table of metrics, and for no other reason."""
    gauges = {spec.name: spec for spec in names.gauges()}
    emitted = [spec for spec in metrics.ALL_SPECS if spec.emitted]
    for spec in emitted:
        assert gauges["agent.reliability." + spec.name].unit == spec.unit
    assert set(gauges) - {"agent.reliability." + spec.name for spec in emitted} == {
        "agent.reliability.last_run.timestamp",
        "agent.reliability.change.evidence",
        "agent.reliability.info",
        "agent.reliability.open_run.usage",
    }


def test_what_the_design_names_is_there() -> None:
    """Names that dashboards rest on: they change with a line in the changelog only."""
    assert {spec.name for spec in ALL} >= {
        "agent.reliability.score",
        "agent.reliability.tier",
        "agent.reliability.flag",
        "agent.reliability.path_entropy",
        "agent.reliability.distinct_paths",
        "agent.reliability.no_effect_share",
        "agent.reliability.modal_path_share",
        "agent.reliability.window.runs",
        "agent.reliability.last_run.timestamp",
        "agent.reliability.runs",
        "agent.reliability.run.revisions",
        "agent.reliability.tool_calls",
        "agent.reliability.retries",
        "agent.reliability.retry_explosions",
        "agent.reliability.run.path_distance",
        "agent.reliability.run.token_pressure",
        "agent.reliability.run.retries",
        "agent.reliability.run.score",
        "gen_ai.invoke_agent.duration",
        "gen_ai.invoke_agent.tool_calls",
        "gen_ai.invoke_agent.inference_calls",
    }
