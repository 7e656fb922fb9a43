"""The agents a service knows, as JSON objects: a line each, and everything about one."""

from __future__ import annotations

from typing import Any

from otel_reliability.engine import Engine
from otel_reliability.errors import ReliabilityError
from otel_reliability.metrics.stability.tiers import tier_of
from otel_reliability.model.run import AgentKey
from otel_reliability.pages.course import Courses
from otel_reliability.pages.hurts import hurt_of
from otel_reliability.pages.look import Taken, look_of, taken
from otel_reliability.report.json import agent_object
from otel_reliability.report.run_record import record
from otel_reliability.report.text import instant
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.fleet import Fleet

Object = dict[str, Any]


class UnknownAgent(ReliabilityError):
    """Nobody of that name has runs here."""


class Agents:
    """Asks an engine. What is told of an agent is as of one moment; with `courses` how its score went, too."""

    def __init__(self, engine: Engine, courses: Courses | None = None) -> None:
        self._engine, self._courses = engine, courses

    def page(self, limit: int, offset: int = 0) -> Object:
        """A line for each agent, in the order in which they were first seen."""
        return self._engine.read(lambda fleet: self._page(fleet, limit, offset)) or {"total": 0, "agents": []}

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

        keys = filter(is_meant, self._engine.read(lambda fleet: fleet.keys()) or [])
        found = [self._engine.read(lambda fleet, key=key: taken(self._engine, fleet, key)) for key in keys]
        if not any(found):
            raise UnknownAgent("no agent of that service and name has runs here")
        return {"agents": [self._told(one) for one in found if one is not None]}

    def _told(self, found: Taken) -> Object:
        settings = self._engine.settings
        look = look_of(found, settings)
        recent = [{**record(run), "path_distance": distance} for run, distance in look.recent]
        change = {
            "state": look.changes.state,
            "sentence": f"{look.changes.head} {look.changes.rest}".strip(),
            "changes": [
                {"since": instant(mark.since_ns), "noticed": instant(mark.noticed_ns), "sentence": mark.sentence}
                for mark in look.changes.marks
            ],
        }
        return {**agent_object(look.card, settings.metrics.profile), "change": change, "recent_runs": recent}

    def _page(self, fleet: Fleet, limit: int, offset: int) -> Object:
        keys = fleet.keys()
        states = [fleet.agent(key) for key in keys[offset : offset + limit]]
        return {"total": len(keys), "agents": [self._line(state) for state in states if state is not None]}

    def _line(self, state: AgentState) -> Object:
        """What all agents have a line of."""
        points = () if self._courses is None else self._courses.of(state.key)
        monitor = self._engine.monitor
        detector = None if monitor is None else monitor.detector(state.key)
        alarm = detector.alarms[-1] if detector is not None and detector.alarms else None
        changed = None if alarm is None else {"noticed": instant(alarm.noticed_ns), "signal": alarm.signal}
        return {**_line(state), "changed": changed, "course": [round(point.score, 1) for point in points]}


def _line(state: AgentState) -> Object:
    key, window = state.key, state.first_window
    score, hurt = window.reading("score"), hurt_of(window.reading)
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
        "flags": list(window.reading("flag").parts),
        "hurts": None if hurt.name is None else hurt._asdict(),
        "last_run": None if state.last_run_ns is None else instant(state.last_run_ns),
    }
