from __future__ import annotations

import pytest

from otel_reliability.config import Settings
from otel_reliability.errors import ConfigurationError
from otel_reliability.telemetry.options import settings_from


def test_nobody_says_anything() -> None:
    """A door without settings takes those of the door before it."""
    assert settings_from({}) is None


def test_the_environment_is_read_and_code_stands_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`OTEL_RELIABILITY_*` sets every setting; keyword arguments beat it."""
    monkeypatch.setenv("OTEL_RELIABILITY_METRICS_MIN_RUNS", "9")
    monkeypatch.setenv("OTEL_RELIABILITY_ASSEMBLY_LINGER", "500ms")
    found = settings_from({"metrics": {"min_runs": 7}})

    assert found is not None
    assert (found.metrics.min_runs, found.assembly.linger) == (7, 0.5)


def test_window_is_short_for_one_window_of_so_many_runs() -> None:
    """As the SDK's declarative configuration hands it over: `{reliability: {window: 50}}`."""
    found = settings_from({"window": 50})

    assert found is not None
    assert [(window.name, window.last) for window in found.windows] == [("recent", 50)]


def test_code_that_says_what_cannot_be_is_told_so() -> None:
    """A wrong argument is raised where it is given, with all four parts of the message."""
    with pytest.raises(ConfigurationError, match=r"windows\[0\].last: 'many' is not"):
        settings_from({"window": "many"})


def test_a_wrong_variable_keeps_no_program_from_starting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the defaults stand: an exporter that raised would take all tracing down with it."""
    monkeypatch.setenv("OTEL_RELIABILITY_ASSEMBLY_LINGER", "soon")

    assert settings_from({}) is None
    assert settings_from({"window": 50}) == Settings.from_mapping({"windows": [{"name": "recent", "last": 50}]})
    assert "OTEL_RELIABILITY_ASSEMBLY_LINGER" in caplog.text
    assert "'soon'" in caplog.text
