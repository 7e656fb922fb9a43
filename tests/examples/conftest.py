"""The mark of tests that run an example in an environment of its own."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Name it: `-m 'not examples'` leaves them out."""
    config.addinivalue_line("markers", "examples: runs an example, with its framework in an environment of its own")
