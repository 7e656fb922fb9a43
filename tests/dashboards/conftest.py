"""The real programs that dashboards and alerts are tried with."""

from __future__ import annotations

from tests.real.plugin import chromium, collector, prometheus, promtool, pytest_configure

__all__ = ["chromium", "collector", "prometheus", "promtool", "pytest_configure"]
