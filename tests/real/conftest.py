"""The fixtures of the real programs, for the tests of this folder."""

from __future__ import annotations

from tests.real.plugin import chromium, collector, kafka, prometheus, promtool, pytest_configure

__all__ = ["chromium", "collector", "kafka", "prometheus", "promtool", "pytest_configure"]
