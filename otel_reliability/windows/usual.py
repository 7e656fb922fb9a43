"""Shortcuts for common runs: none without the native extension."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from otel_reliability.model.event import RunEvent
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.agent import AgentState


def close(state: AgentState, run: Run) -> bool:
    """Return False: nothing was done."""
    return False


def settle(state: AgentState, run: Run) -> bool:
    """Return False: nothing was done."""
    return False


def apply(
    agents: dict[AgentKey, Any], seen: OrderedDict[AgentKey, float], events: list[RunEvent], at: int, *_: object
) -> int:
    """Return the position of the first event that was not applied."""
    return at
