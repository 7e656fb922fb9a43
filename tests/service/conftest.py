"""The real programs, for the tests that put the service between them."""

from __future__ import annotations

from tests.real.plugin import collector, prometheus, promtool, pytest_configure
from tests.service.served import serve

__all__ = ["collector", "prometheus", "promtool", "pytest_configure", "serve"]
