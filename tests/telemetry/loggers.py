from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
from opentelemetry.sdk.resources import Resource


class Kept(LogRecordProcessor):
    """Keeps what is emitted. What it is handed is called otherwise in each SDK,
    and alike inside.
    """

    def __init__(self) -> None:
        self.emitted: list[Any] = []

    def on_emit(self, log_record: Any) -> None:
        self.emitted.append(log_record)

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


def kept_globally(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Have what is emitted without naming a provider kept, until the test ends."""
    processor = Kept()
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", loggers(processor))
    return processor


def loggers(processor: LogRecordProcessor) -> LoggerProvider:
    made = LoggerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    made.add_log_record_processor(processor)
    return made
