"""The agents and tools that have series of their own.

The SDK keeps every attribute set an instrument ever saw, and from 1.45 on folds all beyond 2,000
into one. So each tool is admitted once, for the life of the process, first come, first served.
Agents are admitted by `windows.agents`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec.structs import replace

from otel_reliability.change.signals import SIGNALS
from otel_reliability.config import Settings
from otel_reliability.model.limit import Limit
from otel_reliability.model.run import AgentKey, Outcome
from otel_reliability.telemetry import names

BUDGET: Final = 1_900
"""Maximum attribute sets of an instrument; the SDK's own limit is 2,000."""
MAX_AGENTS: Final = 400
"""Agents with series of their own, ever, in one process."""
WIDEST: Final = 4
"""Attribute sets of one agent and window in the widest instrument: tiers, pass^k for four k."""


def fitting(settings: Settings) -> Settings:
    """Return the settings with the limit of agents lowered to what the widest instrument can hold.

    >>> from otel_reliability.config import WindowSettings
    >>> two = (WindowSettings("recent", last=100), WindowSettings("day", period=86400.0))
    >>> fitting(Settings()).limits.agents, fitting(Settings(windows=two)).limits.agents
    (210, 210)
    """
    signals = len(SIGNALS) if settings.change.enabled else 0
    widest = max(WIDEST * len(settings.windows), signals, len(Outcome))
    room = max(1, BUDGET // widest - 1)  # one is for `__other__`
    return replace(
        settings,
        limits=replace(settings.limits, agents=min(settings.limits.agents, MAX_AGENTS, room)),
    )


class ToolLedger:
    """The tools that have series of their own, per agent.

    A tool-labelled counter has two attribute sets per tool (ok or not). The budget, less one such
    pair for `__other__` of every agent and of the agent `__other__`, is left for tools. Series
    outside an SDK have a `limit` of their own.
    """

    def __init__(self, settings: Settings, limit: int | None = None) -> None:
        self.limit = (
            BUDGET // 2 - (min(settings.limits.agents, MAX_AGENTS) + 1) if limit is None else limit
        )
        self._limit_per_agent = settings.limits.tools
        self._tools: dict[AgentKey, set[str]] = {}
        self._size = self._refused = 0

    def name(self, key: AgentKey, tool: str) -> str:
        """Return the tool's name as an attribute of this agent's series: `__other__` beyond the
        limits.
        """
        known = self._tools.get(key, ())
        if tool in known:
            return tool
        if self._size >= self.limit or len(known) >= self._limit_per_agent:
            self._refused += 1
            return names.OTHER
        self._tools.setdefault(key, set()).add(tool)
        self._size += 1
        return tool

    def keep(self, keys: Collection[AgentKey]) -> None:
        """Forget the tools of all other agents: their series have ended."""
        self._tools = {key: tools for key, tools in self._tools.items() if key in keys}
        self._size = sum(map(len, self._tools.values()))

    def restore(self, tools: Iterable[tuple[AgentKey, str]]) -> None:
        """Replace all tools by these."""
        self._tools = {}
        for key, tool in tools:
            self._tools.setdefault(key, set()).add(tool)
        self._size = sum(map(len, self._tools.values()))
        self._refused = 0

    def limits(self) -> tuple[Limit, ...]:
        return (Limit("tools", self._size, self.limit, self._refused),)
