"""The agents a service knows, as JSON objects: a line each, and everything about one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from aiohttp import web

from otel_reliability.engine import Engine
from otel_reliability.errors import ReliabilityError
from otel_reliability.model.run import AgentKey
from otel_reliability.read_view import ReadView
from otel_reliability.report.build import AgentSource
from otel_reliability.report.gate import check, document
from otel_reliability.report.json import key_object, plain
from otel_reliability.report.run_fields import record_of
from otel_reliability.report.target import parse
from otel_reliability.report.text import clean, instant
from otel_reliability.report.view import AgentComparison, ChangeView, ReportView
from otel_reliability.ui.agent_list import UNNAMED, line_of
from otel_reliability.ui.known_groups import KnownGroups
from otel_reliability.ui.live import (
    Histories,
    comparison,
    headed,
    live_view,
    snapshot,
    versions_compared,
)
from otel_reliability.ui.runs import MAX_COMPARED, RunChoice, RunStore
from otel_reliability.windows.agents import AgentState

Object: TypeAlias = dict[str, Any]

MAX_LINES: Final = 1_000
"""Agents of one page."""


class UnknownAgent(ReliabilityError):
    """Error: no agent of that name has runs here."""


class Agents:
    """Reads agents of an engine, each as of one moment, and their whole runs. `histories` add
    scores over time, `groups` the kinds of request; `changed` is called when something is to be
    stored.

    A request about a service and an agent of it is about all agents of these names, unless its
    query gives a namespace and an environment. Raises `UnknownAgent` if there is none, and
    `ReliabilityError` for a query that cannot be answered.
    """

    def __init__(
        self,
        engine: Engine,
        runs: RunStore,
        groups: KnownGroups,
        changed: Callable[[], None],
        histories: Histories | None = None,
    ) -> None:
        self._engine = engine
        self._runs = runs
        self._groups = groups
        self._changed = changed
        self._histories = histories

    def page(self, request: web.Request) -> Object:
        """Return a line for each agent, in the order in which they were first seen: `limit` of them
        from `offset` on.
        """
        limit = min(_whole(request, "limit", MAX_LINES), MAX_LINES)
        offset = _whole(request, "offset", 0)
        for key in self._all_keys()[offset : offset + limit]:
            self._engine.load_agent(key)
        return self._engine.read(lambda view: self._page(view, limit, offset)) or {
            "total": 0,
            "agents": [],
        }

    def details(self, request: web.Request) -> Object:
        return {"agents": list(map(self._details, self._found(request)))}

    def gate(self, request: web.Request) -> Object:
        """Return the results of the targets `require`; each needs `min_runs`, else as many as a
        score.
        """
        settings = self._engine.settings
        targets = list(map(parse, request.query.getall("require", ())))
        min_runs = _whole(request, "min_runs", 0) or settings.metrics.min_runs
        agents = [live_view(found, settings) for found in self._found(request)]
        report = ReportView(
            agents=agents,
            spans={},
            span_reasons={},
            problems={},
            attributes_refused={},
            data_quality=(),
            notes=(),
        )
        return document(check(report, targets, min_runs))

    def runs(self, request: web.Request) -> Object:
        """Return the last whole runs that are chosen."""
        keys = self.keys(request)
        choice = RunChoice.of(request.query)
        return {"runs": [record_of(run) for key in keys for run in self._runs.last(key, choice)]}

    def compare(self, request: web.Request) -> Object:
        """Return how the versions `before` and `after` differ, or the kinds of request `group` and
        `other`.
        """
        keys = self.keys(request)
        settings = self._engine.settings
        sides = [request.query.get(name, "") for name in ("group", "other")]
        if any(sides):
            return {"agents": [plain(self._groups_compared(key, sides)) for key in keys]}
        before, after = (request.query.get(name, "") for name in ("before", "after"))
        runs = ((key, self._runs.last(key, most=MAX_COMPARED)) for key in keys)
        return {
            "agents": [
                plain(versions_compared(key, each, before, after, settings)) for key, each in runs
            ]
        }

    def _groups_compared(self, key: AgentKey, groups: Sequence[str]) -> AgentComparison:
        one, other = (
            self._runs.last(key, RunChoice(group=group), MAX_COMPARED) if group else []
            for group in groups
        )
        if not one or not other:
            raise ReliabilityError(
                "group and other must name two kinds of request (request_groups) with runs here"
            )
        names = (clean(groups[0]), clean(groups[1]))
        return comparison(key, one, other, self._engine.settings, names)

    def name_group(self, request: web.Request) -> Object:
        """Give a group of requests the name of the query, or none."""
        keys = self.keys(request)
        group = request.match_info["group"]
        name = request.query.get("name", "")

        def rename(view: ReadView) -> list[AgentKey]:
            for key in keys:
                state = view.agent(key)
                if state is not None:
                    self._groups.update(key, state.first_window.rows())
            return [key for key in keys if self._groups.rename(key, group, name)]

        if not self._engine.read(rename):
            raise UnknownAgent("no group of requests has this letter here")
        self._changed()
        return {"group": group, "name": name}

    def _found(self, request: web.Request) -> list[AgentSource]:
        engine = self._engine
        found = [
            engine.read(lambda view, key=key: snapshot(view, key, groups=self._groups))
            for key in self.keys(request)
        ]
        return [one for one in found if one is not None]

    def keys(self, request: web.Request) -> list[AgentKey]:
        """Return the agents that a request is about."""
        path = request.match_info
        query = request.query
        found = [
            key
            for key in self._all_keys()
            if (key.service_name or UNNAMED, key.agent or UNNAMED)
            == (path["service"], path["agent"])
            and query.get("namespace") in {None, key.service_namespace}
            and query.get("environment") in {None, key.environment}
        ]
        if not found:
            raise UnknownAgent("no agent of that service and name has runs here")
        for key in found:
            self._engine.load_agent(key)
        return found

    def _all_keys(self) -> list[AgentKey]:
        return self._engine.read(lambda view: view.keys()) or []

    def _details(self, found: AgentSource) -> Object:
        settings = self._engine.settings
        agent = live_view(found._replace(samples=self._runs.samples(found.key)), settings)
        recent = [
            {**record_of(run), "path_distance": agent.distances.get(run.run_id)}
            for run in agent.recent
        ]
        change = None if agent.change is None else _change(agent.change)
        return {**plain(agent), "change": change, "recent_runs": recent}

    def _page(self, view: ReadView, limit: int, offset: int) -> Object:
        keys = view.keys()
        states = [view.agent(key) for key in keys[offset : offset + limit]]
        return {
            "total": len(keys),
            "agents": [self._line(state) for state in states if state is not None],
        }

    def _line(self, state: AgentState) -> Object:
        """Return the line of an agent in the list of all."""
        points = () if self._histories is None else self._histories.of(state.key)
        monitor = self._engine.monitor
        detector = None if monitor is None else monitor.detector(state.key)
        alarm = detector.alarms[-1] if detector is not None and detector.alarms else None
        line = line_of(state, points)
        return {
            **key_object(line.key),
            "verdict": line.verdict.value,
            "grade": None if line.grade is None else line.grade.name,
            "success_rate": line.success.value,
            "error_rate": line.errors.value,
            "cost_per_run": line.cost.value,
            "runs": line.runs,
            "score": line.score,
            "score_coverage": line.coverage,
            "score_note": line.note,
            "tier": None if line.tier is None else line.tier.name,
            "flags": list(line.flags),
            "largest_penalty": None if line.penalty.name is None else line.penalty._asdict(),
            "last_run": instant(line.last_ns) if line.last_ns else None,
            "changed": None
            if alarm is None
            else {"noticed": instant(alarm.noticed_ns), "signal": alarm.signal},
            "score_history": [round(point.score, 1) for point in points],
        }


def _whole(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "") or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ReliabilityError(f"{name} is not a whole number from 0")
    return int(text)


def _change(change: ChangeView) -> Object:
    sentence = " ".join(headed(change.sentence)).strip()
    return {"state": change.state, "sentence": sentence, "changes": plain(change.marks)}
