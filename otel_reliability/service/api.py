"""The agents a service knows, as JSON objects: a line each, and everything about one."""

from __future__ import annotations

from typing import Any

from otel_reliability.engine import Engine
from otel_reliability.errors import ReliabilityError
from otel_reliability.metrics.stability.tiers import tier_of
from otel_reliability.model.run import AgentKey
from otel_reliability.report.build import AgentSource
from otel_reliability.report.json import plain
from otel_reliability.report.run_record import record
from otel_reliability.report.text import instant
from otel_reliability.report.view import ChangeView
from otel_reliability.ui.agent_list import top_penalty
from otel_reliability.ui.live import Histories, headed, live_view, snapshot
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.agents import AgentRegistry

Object = dict[str, Any]


class UnknownAgent(ReliabilityError):
    """Error: no agent of that name has runs here."""


class Agents:
    """Reads agents of an engine, each as of one moment. `histories` add scores over time."""

    def __init__(self, engine: Engine, histories: Histories | None = None) -> None:
        self._engine, self._histories = engine, histories

    def page(self, limit: int, offset: int = 0) -> Object:
        """Return a line for each agent, in the order in which they were first seen."""
        return self._engine.read(lambda agents: self._page(agents, limit, offset)) or {"total": 0, "agents": []}

    def details(
        self, service: str, agent: str, *, namespace: str | None = None, environment: str | None = None
    ) -> Object:
        """Return all agents of that name: one, unless it is known in several namespaces or environments.

        Raise `UnknownAgent` if there is none.
        """

        def is_meant(key: AgentKey) -> bool:
            return (
                (key.service_name, key.agent) == (service, agent)
                and namespace in {None, key.service_namespace}
                and environment in {None, key.environment}
            )

        keys = filter(is_meant, self._engine.read(lambda agents: agents.keys()) or [])
        found = [self._engine.read(lambda agents, key=key: snapshot(self._engine, agents, key)) for key in keys]
        if not any(found):
            raise UnknownAgent("no agent of that service and name has runs here")
        return {"agents": [self._details(one) for one in found if one is not None]}

    def _details(self, found: AgentSource) -> Object:
        settings = self._engine.settings
        agent = live_view(found, settings)
        recent = [{**record(run), "path_distance": distance} for run, distance in agent.recent]
        change = None if agent.change is None else _change(agent.change)
        return {**plain(agent), "change": change, "recent_runs": recent}

    def _page(self, agents: AgentRegistry, limit: int, offset: int) -> Object:
        keys = agents.keys()
        states = [agents.agent(key) for key in keys[offset : offset + limit]]
        return {"total": len(keys), "agents": [self._line(state) for state in states if state is not None]}

    def _line(self, state: AgentState) -> Object:
        """Return the line of an agent in the list of all."""
        points = () if self._histories is None else self._histories.of(state.key)
        monitor = self._engine.monitor
        detector = None if monitor is None else monitor.detector(state.key)
        alarm = detector.alarms[-1] if detector is not None and detector.alarms else None
        changed = None if alarm is None else {"noticed": instant(alarm.noticed_ns), "signal": alarm.signal}
        return {**_line(state), "changed": changed, "course": [round(point.score, 1) for point in points]}


def _change(change: ChangeView) -> Object:
    sentence = " ".join(headed(change.sentence)).strip()
    return {"state": change.state, "sentence": sentence, "changes": plain(change.marks)}


def _line(state: AgentState) -> Object:
    key, window = state.key, state.first_window
    costs = {name: cost.points for name, cost in window.penalties().items()}
    score, penalty = window.reading("score"), top_penalty(window.reading, costs)
    return {
        "service_namespace": key.service_namespace or None,
        "service": key.service_name or None,
        "environment": key.environment or None,
        "agent": key.agent,
        **({"attributes": dict(key.extra)} if key.extra else {}),
        "runs": window.runs,
        "score": score.value,
        "score_coverage": window.reading("score_coverage").value,
        "score_note": score.note,
        "tier": None if score.value is None else tier_of(score.value).name,
        "flags": list(window.reading("flag").parts),
        "hurts": None if penalty.name is None else penalty._asdict(),
        "last_run": None if state.last_run_ns is None else instant(state.last_run_ns),
    }
