"""The real programs, for the tests that put the service between them."""

from __future__ import annotations

from tests.real.plugin import collector, prometheus, promtool, pytest_configure

__all__ = ["collector", "prometheus", "promtool", "pytest_configure"]
