"""Requests read by a native extension, where one is installed. None is."""

from __future__ import annotations

from typing import Any, Final

MODULE: Final = "otel_reliability_native"


def load() -> Any:
    """Return the native extension, None where it is not installed."""
    return None
