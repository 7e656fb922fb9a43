"""Which agents and tools may have series of their own.

The SDK keeps every attribute set an instrument ever saw, and from 1.45 on folds all beyond 2 000 into one. So places are
given out once, for the life of the process, and the first to come keep them. Agents get theirs from `windows.fleet`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from otel_reliability.config import Settings
from otel_reliability.engine import Ceiling
from otel_reliability.model.run import AgentKey
from otel_reliability.telemetry import names

BUDGET: Final = 1_900
"""Attribute sets an instrument may have; the SDK's own limit is 2 000."""
WIDEST: Final = 4
"""Attribute sets an agent has in a window of the widest instrument: four tiers, four outcomes, pass^k for four k."""


def widest(settings: Settings) -> int:
    """Attribute sets an agent has in the widest instrument: one a tier and window, or one a signal of change."""
    signals = len(settings.change.signals) if settings.change.enabled else 0
    return max(WIDEST * len(settings.windows), signals)


def fitting(settings: Settings) -> Settings:
    """The settings, with the ceiling of agents lowered to what the widest instrument has room for.

    >>> from otel_reliability.config import WindowSettings
    >>> two = (WindowSettings("recent", last=100), WindowSettings("day", period=86400.0))
    >>> fitting(Settings()).limits.agents, fitting(Settings(windows=two)).limits.agents
    (270, 236)
    """
    room = max(1, BUDGET // widest(settings) - 1)  # one is for `__other__`
    return replace(settings, limits=replace(settings.limits, agents=min(settings.limits.agents, room)))


class ToolLedger:
    """The places of tools, and how many asked in vain.

    A tool-labelled counter has two attribute sets a tool (ok or not). What is left for tools is the budget less one such
    pair for `__other__` of every agent, and of the agent `__other__`. Series that do not live in an SDK have a `limit` of
    their own.
    """

    def __init__(self, settings: Settings, limit: int | None = None) -> None:
        self.limit = BUDGET // 2 - (settings.limits.agents + 1) if limit is None else limit
        self._limit_an_agent = settings.limits.tools
        self._places: set[tuple[AgentKey, str]] = set()
        self._places_of: Counter[AgentKey] = Counter()
        self._refused = 0

    def name(self, key: AgentKey, tool: str) -> str:
        """The tool's name as an attribute of this agent's series: its own while there is room."""
        if (key, tool) in self._places:
            return tool
        if len(self._places) >= self.limit or self._places_of[key] >= self._limit_an_agent:
            self._refused += 1
            return names.OTHER
        self._places.add((key, tool))
        self._places_of[key] += 1
        return tool

    def refuse(self, number: int) -> None:
        """So many that have no place asked once more."""
        self._refused += number

    def keep(self, keys: Collection[AgentKey]) -> None:
        """Free the places of all other agents: their series have ended."""
        self._places = {place for place in self._places if place[0] in keys}
        self._places_of = Counter(key for key, _ in self._places)

    def to_state(self) -> tuple[list[tuple[AgentKey, str]], int]:
        """The places that are taken, and how many asked in vain."""
        return (list(self._places), self._refused)

    def restore(self, state: tuple[list[tuple[AgentKey, str]], int]) -> None:
        """Take over what `to_state` gave."""
        places, self._refused = state
        self._places = set(places)
        self._places_of = Counter(key for key, _ in places)

    def ceilings(self) -> tuple[Ceiling, ...]:
        """How many places there are, and are taken."""
        return (Ceiling("tools", len(self._places), self.limit, self._refused),)
