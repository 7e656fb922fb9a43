"""The agents a service knows, as JSON objects: a line each, and everything about one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from otel_reliability.engine import Engine
from otel_reliability.errors import ReliabilityError
from otel_reliability.model.run import AgentKey
from otel_reliability.report.build import AgentSource
from otel_reliability.report.gate import check, document
from otel_reliability.report.json import key_object, plain, record
from otel_reliability.report.target import parse
from otel_reliability.report.text import instant
from otel_reliability.report.view import ChangeView, ReportView
from otel_reliability.ui.agent_list import UNNAMED, line_of
from otel_reliability.ui.live import Histories, headed, live_view, snapshot, versions_compared
from otel_reliability.ui.runs import MAX_COMPARED, RunChoice, RunStore
from otel_reliability.windows.agents import AgentRegistry, AgentState

Object = dict[str, Any]


class UnknownAgent(ReliabilityError):
    """Error: no agent of that name has runs here."""


class AgentName(NamedTuple):
    """A service and an agent of it, as requests name them: several agents, unless a namespace and an environment are given."""

    service: str
    agent: str
    namespace: str | None = None
    environment: str | None = None


class Agents:
    """Reads agents of an engine, each as of one moment, and their whole runs. `histories` add scores over time.

    What is asked about a name is asked about all agents that have it. Raises `UnknownAgent` if there is none.
    """

    def __init__(self, engine: Engine, runs: RunStore, histories: Histories | None = None) -> None:
        self._engine, self._runs, self._histories = engine, runs, histories

    def page(self, limit: int, offset: int = 0) -> Object:
        """Return a line for each agent, in the order in which they were first seen."""
        return self._engine.read(lambda agents: self._page(agents, limit, offset)) or {"total": 0, "agents": []}

    def details(self, name: AgentName) -> Object:
        """Return everything about the agents of a name."""
        return {"agents": list(map(self._details, self._found(name)))}

    def gate(self, name: AgentName, requirements: Sequence[str], min_runs: int = 0) -> Object:
        """Return the results of targets. `min_runs` 0: those that a score needs.

        Raise `ReliabilityError` for a target that is none.
        """
        settings, targets = self._engine.settings, list(map(parse, requirements))
        agents = [live_view(found, settings) for found in self._found(name)]
        report = ReportView(agents=agents, spans={}, span_reasons={}, problems={}, attributes_refused={}, notes=())
        return document(check(report, targets, min_runs or settings.metrics.min_runs), [])

    def runs(self, name: AgentName, choice: RunChoice) -> Object:
        """Return the last whole runs that are chosen."""
        return {"runs": [record(run) for key in self._keys(name) for run in self._runs.last(key, choice)]}

    def compare(self, name: AgentName, before: str, after: str) -> Object:
        """Return how two versions differ. Raise `ReliabilityError` for a version without runs."""
        keys, settings = self._keys(name), self._engine.settings
        runs = ((key, self._runs.last(key, most=MAX_COMPARED)) for key in keys)
        return {"agents": [plain(versions_compared(key, each, before, after, settings)) for key, each in runs]}

    def _found(self, name: AgentName) -> list[AgentSource]:
        engine = self._engine
        found = [engine.read(lambda agents, key=key: snapshot(engine, agents, key)) for key in self._keys(name)]
        return [one for one in found if one is not None]

    def _keys(self, name: AgentName) -> list[AgentKey]:
        found = [
            key
            for key in self._engine.read(lambda agents: agents.keys()) or ()
            if (key.service_name or UNNAMED, key.agent or UNNAMED) == name[:2]
            and name.namespace in {None, key.service_namespace}
            and name.environment in {None, key.environment}
        ]
        if not found:
            raise UnknownAgent("no agent of that service and name has runs here")
        return found

    def _details(self, found: AgentSource) -> Object:
        settings = self._engine.settings
        agent = live_view(found, settings)
        recent = [{**record(run), "path_distance": agent.distances.get(run.run_id)} for run in agent.recent]
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
        line = line_of(state, points)
        return {
            **key_object(line.key),
            "runs": line.runs,
            "score": line.score,
            "score_coverage": line.coverage,
            "score_note": line.note,
            "tier": None if line.tier is None else line.tier.name,
            "flags": list(line.flags),
            "largest_penalty": None if line.penalty.name is None else line.penalty._asdict(),
            "last_run": instant(line.last_ns) if line.last_ns else None,
            "changed": None if alarm is None else {"noticed": instant(alarm.noticed_ns), "signal": alarm.signal},
            "score_history": [round(point.score, 1) for point in points],
        }


def _change(change: ChangeView) -> Object:
    sentence = " ".join(headed(change.sentence)).strip()
    return {"state": change.state, "sentence": sentence, "changes": plain(change.marks)}
