from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from otel_reliability.telemetry.guard import LOUD_VARIABLE, Guard


@pytest.fixture(autouse=True)
def counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guard, "faults", type(Guard.faults)())


def fail(place: str, message: str = "the customer's secret") -> None:
    with Guard(place):
        raise ValueError(message)


def test_each_place_is_logged_once_without_what_the_error_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A message may quote the user's data, so the log has the type and the line only; and it does
    not repeat itself.
    """
    monkeypatch.setattr(Guard, "loud", False)
    for _ in range(3):
        fail("here")

    (record,) = caplog.records
    assert (record.name, record.levelno) == ("otel_reliability", logging.ERROR)
    assert "here failed with ValueError" in record.getMessage()
    assert "test_guard.py:" in record.getMessage()
    assert "secret" not in caplog.text


def test_a_failing_log_handler_is_kept_from_the_host_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("the host's logging is broken")

    monkeypatch.setattr(Guard, "loud", False)
    logger = logging.getLogger("otel_reliability")
    handler = Broken()
    logger.addHandler(handler)
    try:
        fail("here")
    finally:
        logger.removeHandler(handler)

    assert Guard.faults == {"here": 1}


def test_an_interrupt_is_the_hosts() -> None:
    with pytest.raises(KeyboardInterrupt), Guard("here"):
        raise KeyboardInterrupt
    assert not Guard.faults


@pytest.mark.parametrize(
    ("value", "loud"), [("1", True), ("true", True), ("0", False), ("", False), (None, False)]
)
def test_the_environment_makes_it_loud(value: str | None, loud: bool) -> None:
    environment = {key: given for key, given in os.environ.items() if key != LOUD_VARIABLE}
    if value is not None:
        environment[LOUD_VARIABLE] = value
    code = "from otel_reliability.telemetry.guard import Guard; print(Guard.loud)"
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert told.stdout.strip() == str(loud)
