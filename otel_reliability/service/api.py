"""The agents a service knows, as JSON objects: a line each, and everything about one."""

from __future__ import annotations

from typing import Any, Final

from otel_reliability.engine import Engine
from otel_reliability.errors import ReliabilityError
from otel_reliability.metrics.stability.tiers import tier_of
from otel_reliability.metrics.uncertainty import intervals
from otel_reliability.model.run import AgentKey
from otel_reliability.report.json import agent_object
from otel_reliability.report.run_record import record
from otel_reliability.report.scorecard import Scorecard, scorecard
from otel_reliability.report.text import instant
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.fleet import Fleet

MOST_FOR_INTERVALS: Final = 200
"""Runs of a window up to which intervals are computed: they take some 3 ms a run."""

Object = dict[str, Any]


class UnknownAgent(ReliabilityError):
    """Nobody of that name has runs here."""


class Agents:
    """Asks an engine. Every answer is as of one moment."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(self, limit: int, offset: int = 0) -> Object:
        """A line for each agent, in the order in which they were first seen."""
        return self._engine.read(lambda fleet: _page(fleet, limit, offset)) or {"total": 0, "agents": []}

    def details(
        self, service: str, agent: str, *, namespace: str | None = None, environment: str | None = None
    ) -> Object:
        """All agents of that name; one, unless it is known in several namespaces or environments.

        Raises `UnknownAgent` where there is none.
        """

        def is_meant(key: AgentKey) -> bool:
            return (
                (key.service_name, key.agent) == (service, agent)
                and namespace in {None, key.service_namespace}
                and environment in {None, key.environment}
            )

        found = self._engine.read(lambda fleet: [self._one(fleet, key) for key in filter(is_meant, fleet.keys())]) or []
        if not found:
            raise UnknownAgent("no agent of that service and name has runs here")
        return {"agents": [self._told(card, recent) for card, recent in found]}

    def _one(self, fleet: Fleet, key: AgentKey) -> tuple[Scorecard, list[Object]]:
        state = fleet.agent(key)
        if state is None:
            raise UnknownAgent("the agent has just expired")
        window = next(iter(state.windows.values()))
        sessions = self._engine.sessions.scores(key)
        card = scorecard(key, window, sessions, self._engine.settings, most_for_intervals=0)
        distances = {row.run_id: window.path_distance(row).value for row in window.rows()}
        recent = [{**record(run), "path_distance": distances.get(run.run_id)} for run in state.recent]
        return card, recent

    def _told(self, card: Scorecard, recent: list[Object]) -> Object:
        settings = self._engine.settings
        if len(card.rows) <= MOST_FOR_INTERVALS:
            card = card._replace(intervals=intervals(card.rows, settings))
        return {**agent_object(card, settings.metrics.profile), "recent_runs": recent}


def _page(fleet: Fleet, limit: int, offset: int) -> Object:
    keys = fleet.keys()
    states = [fleet.agent(key) for key in keys[offset : offset + limit]]
    return {"total": len(keys), "agents": [_line(state) for state in states if state is not None]}


def _line(state: AgentState) -> Object:
    key, window = state.key, next(iter(state.windows.values()))
    score = window.reading("score")
    return {
        "service_namespace": key.service_namespace or None,
        "service": key.service_name or None,
        "environment": key.environment or None,
        "agent": key.agent,
        **({"attributes": dict(key.extra)} if key.extra else {}),
        "runs": window.runs,
        "score": score.value,
        "score_note": score.note,
        "tier": None if score.value is None else tier_of(score.value).name,
        "last_run": None if state.last_run_ns is None else instant(state.last_run_ns),
    }
