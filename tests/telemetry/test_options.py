from __future__ import annotations

import pytest

from otel_reliability.config import Settings
from otel_reliability.telemetry.live import settings_from


def test_the_environment_is_read_and_code_stands_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`OTEL_RELIABILITY_*` sets every setting; keyword arguments beat it."""
    monkeypatch.setenv("OTEL_RELIABILITY_METRICS_MIN_RUNS", "9")
    monkeypatch.setenv("OTEL_RELIABILITY_ASSEMBLY_LINGER", "500ms")
    found = settings_from({"metrics": {"min_runs": 7}})

    assert found is not None
    assert (found.metrics.min_runs, found.assembly.linger) == (7, 0.5)


def test_a_wrong_variable_keeps_no_program_from_starting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the defaults stand: an exporter that raised would take all tracing down with it."""
    monkeypatch.setenv("OTEL_RELIABILITY_ASSEMBLY_LINGER", "soon")

    assert settings_from({}) is None
    assert settings_from({"window": 50}) == Settings.from_mapping({"windows": [{"name": "recent", "last": 50}]})
    assert "OTEL_RELIABILITY_ASSEMBLY_LINGER" in caplog.text
    assert "'soon'" in caplog.text
