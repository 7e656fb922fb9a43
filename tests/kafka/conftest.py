"""The real programs, for the tests that put workers between them."""

from __future__ import annotations

from tests.kafka.workers import workers
from tests.real.plugin import collector, kafka, prometheus, pytest_configure

__all__ = ["collector", "kafka", "prometheus", "pytest_configure", "workers"]
