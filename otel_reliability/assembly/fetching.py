"""What has left the processor's caches, fetched together, by the compiled module where it is installed.

A run is told, settled, and let go of minutes apart, with thousands of others in between. Whoever looks at one after the other
then waits for the memory at each of its objects. Those that settle are fetched by what settles them (`usual`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from otel_reliability.assembly.compiled import NATIVE
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.tool_calls import ToolCalls


def _leave(objects: list[Any]) -> None:
    """Nothing."""


fetch: Final[Callable[[list[Any]], None]] = _leave if NATIVE is None else NATIVE.Fetcher(ModelCalls, ToolCalls).fetch
"""Have these objects, and what they hold, come nearer. It changes nothing."""
