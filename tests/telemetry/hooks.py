"""The hooks in Python, where the compiled ones are installed."""

from __future__ import annotations

import pytest

from otel_reliability.processor import ReliabilitySpanProcessor
from otel_reliability.telemetry import queues
from otel_reliability.telemetry.hooks import PlainHooks


def in_python(processor: type[ReliabilitySpanProcessor], patch: pytest.MonkeyPatch) -> None:
    """Let processors of this class, and all queues made from now on, do without the compiled part."""
    patch.setattr(queues, "NATIVE", None)
    for name in ("on_start", "on_end", "_fill", "_look_after"):
        patch.setattr(processor, name, getattr(PlainHooks, name))
