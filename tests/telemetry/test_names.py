from __future__ import annotations

import re

import pytest

from otel_reliability import metrics
from otel_reliability.telemetry import names
from otel_reliability.telemetry.names import Instrument

ALL = (
    *names.gauges(),
    *names.COUNTERS,
    *names.HISTOGRAMS,
    *names.STANDARD,
    *names.SELF,
    *names.SERVICE,
    *names.KAFKA,
)


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: spec.name)
def test_an_instrument_is_named_as_opentelemetry_asks(spec: Instrument) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+", spec.name)
    assert re.fullmatch(r"\{[a-z_]+\}|s", spec.unit)
    assert not spec.name.endswith((".count", ".total", "_total", "_seconds"))
    assert len(spec.description) > 15
    assert spec.description.endswith(".")


def test_every_window_metric_has_its_gauge() -> None:
    gauges = {spec.name: spec for spec in names.gauges()}
    emitted = [spec for spec in metrics.ALL_SPECS.values() if spec.emitted]
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
    ours = (
        "score",
        "tier",
        "flag",
        "path_entropy",
        "distinct_paths",
        "no_effect_share",
        "modal_path_share",
        "window.runs",
        "last_run.timestamp",
        "runs",
        "run.revisions",
        "tool_calls",
        "retries",
        "retry_explosions",
        "run.path_distance",
        "run.token_pressure",
        "run.retries",
        "run.score",
    )
    standard = ("duration", "tool_calls", "inference_calls")

    assert {spec.name for spec in ALL} >= {f"agent.reliability.{name}" for name in ours}
    assert {spec.name for spec in ALL} >= {f"gen_ai.invoke_agent.{name}" for name in standard}
