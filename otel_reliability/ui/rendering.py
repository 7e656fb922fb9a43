"""The templates of pages, the functions they use, and the static files that pages load."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from heapq import nsmallest
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from otel_reliability.change.sentences import moment
from otel_reliability.metrics.sessions import reliability_band
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.tiers import rounded
from otel_reliability.report import groups, words
from otel_reliability.report.history import MIN_RUNS
from otel_reliability.report.reasons import UNUSUAL, splits
from otel_reliability.report.terminal import ordered_tasks
from otel_reliability.report.text import (
    ABSENT,
    agent_name,
    clean,
    count,
    grouped,
    instant,
    measured,
    number,
    percent,
    place,
    route,
)
from otel_reliability.report.view import AgentView, Cost, ScoreReason, SessionView
from otel_reliability.ui.agent_list import AgentLine, AgentList, id_of
from otel_reliability.ui.charts import curve, pressure_chart
from otel_reliability.ui.flow import COMMON, Flow, Steps, flow_of
from otel_reliability.ui.live import headed
from otel_reliability.ui.runs import DEGREES, call_lines, run_lines

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types of the static files, by ending."""
SYMBOLS: Final[Mapping[str, str]] = {"STABLE": "●", "VARIABLE": "◆", "UNSTABLE": "▲", "CRITICAL": "■", "none": "○"}
"""A shape for each tier: colour alone is not enough for readers who cannot see it."""
SORTS: Final[Mapping[str, str]] = {
    "score": "lowest score",
    "best": "highest score",
    "trend": "largest fall",
    "name": "name",
    "runs": "most runs",
    "last": "latest run",
}
"""Names of the orders of the table."""
POLL: Final = 3_000
"""Milliseconds after which a page asks whether it is still current."""
MAX_FLOWS: Final = 3
"""Tasks whose paths have a graph of their own, those whose runs differ most."""
MAX_TASKS: Final = 20
MAX_SESSIONS: Final = 10
GROUPS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("The score and its parts", ("score", *PENALTIES)),
    ("Other readings", groups.STABILITY),
    ("Evaluation", groups.EVALUATION),
    ("Repeated attempts", ("pass_at_k", "pass_hat_k", *groups.PASSES)),
    ("Sessions", groups.SESSION_GAUGES),
)
DIMENSIONS: Final = ("reliability", "consistency", "predictability", "robustness", "safety")
"""The aggregates of the evaluation."""


class Endpoints(NamedTuple):
    """The endpoints that receive spans, for the empty table; empty where an endpoint is off. `token`: whether one is required."""

    http: str = ""
    grpc: str = ""
    token: bool = False


class Asset(NamedTuple):
    """A static file: its bytes, its media type, and a short digest."""

    body: bytes
    kind: str
    digest: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return the static files by their path below `static`."""
    files = (file for file in sorted(STATIC.rglob("*")) if file.suffix in TYPES)
    return {file.relative_to(STATIC).as_posix(): _asset(file) for file in files}


def _asset(file: Path) -> Asset:
    body = file.read_bytes()
    return Asset(body, TYPES[file.suffix], hashlib.blake2b(body, digest_size=6).hexdigest())


def agents_page(agents: AgentList, endpoints: Endpoints, *, window: str) -> str:
    """Return the page of all agents."""
    facts = endpoints._asdict()
    return _page("agents.html", agents=agents, link=_link, sorts=SORTS, window=window, **facts)


def agent_page(agent: AgentView, *, window: str) -> str:
    """Return the page of one agent."""
    return _page("agent.html", agent=agent, since=f"The score of the {window}, over at most a week.")


def message_page(title: str, text: str, *, poll: int = 0) -> str:
    """Return a page with a message; it polls only where the message will disappear by itself."""
    return _page("message.html", poll=poll, title=title, text=text)


def report_page(name: str, **facts: Any) -> str:
    """Return a page that is a file of its own."""
    return templates().get_template(name).render(poll=0, **facts)


def _page(name: str, **facts: Any) -> str:
    return templates().get_template(name).render(static=_static, **{"poll": POLL, **facts})


def _link(line: AgentLine) -> str:
    return line.path


def _static(name: str) -> str:
    return f"/static/{name}?{assets()[name].digest}"


@cache
def templates() -> Environment:
    """Return the templates; all values are escaped, and a missing one is an error."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters.update(_FILTERS)
    known: dict[str, Any] = found.globals
    known.update(
        about=words.about,
        common_from=COMMON,
        coverage=words.coverage,
        curve=curve,
        degrees=DEGREES,
        dimensions=DIMENSIONS,
        groups=GROUPS,
        heavy=_heavy,
        interval=words.interval,
        made_of=groups.made_of,
        meaning=words.meaning,
        measured=measured,
        min_runs=MIN_RUNS,
        missing=words.missing,
        specs=groups.ALL_SPECS,
        unusual=UNUSUAL,
        version=version("otel-reliability"),
    )
    return found


# --- What templates compute of a view ---------------------------------------------------------------------------------


def _chart(agent: AgentView) -> str:
    """Return the points and marks of a curve, in seconds, for its script."""
    points = [[round(point.ns / 1e9, 3), round(point.score, 2)] for point in agent.history]
    marks = () if agent.change is None else agent.change.marks
    return json.dumps({"points": points, "marks": [[round(mark.since / 1e9, 3), mark.sentence] for mark in marks]})


def _flow(agent: AgentView) -> Flow | None:
    paths: Counter[Steps] = Counter()
    for (_, steps), runs in agent.paths.items():
        paths[steps] += runs
    return flow_of(paths)


def _task_flows(agent: AgentView) -> list[Flow]:
    tasks = [one.task_id for one in agent.findings.divergences if one.task_id is not None][:MAX_FLOWS]
    paths = {task: {steps: runs for (of, steps), runs in agent.paths.items() if of == task} for task in tasks}
    return [flow for task in tasks if (flow := flow_of(paths[task], task)) is not None]


def _reason(agent: AgentView, title: str) -> ScoreReason | None:
    return next((reason for reason in agent.findings.reasons if reason.title == title), None)


def _heavy(cost: Cost) -> bool:
    return (cost.points or 0.0) >= cost.most / 4


def _worst_sessions(agent: AgentView) -> list[SessionView]:
    def order(one: SessionView) -> tuple[bool, float, str]:
        return (one.reliability is None, one.reliability or 0.0, one.id)

    return nsmallest(MAX_SESSIONS, agent.sessions, key=order)


def _known(agent: AgentView, names: Sequence[str]) -> list[str]:
    return [name for name in names if agent.metrics[name].value is not None]


def _known_first(agent: AgentView, names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: agent.metrics[name].value is None)


def _tasks(agent: AgentView) -> list[Any]:
    return [pair for pair in ordered_tasks(agent) if pair[0].task_id is not None][:MAX_TASKS]


def _calls(agent: AgentView) -> list[Any]:
    return list(call_lines(run for run, _ in agent.recent))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', ':', '!', '?')) else '.'}"


def _zero(amount: int) -> str:
    return f"{amount:,}" if amount else ABSENT


def _route(steps: Sequence[str]) -> str:
    return route(steps, most=12)


def _score(value: float | None) -> str:
    return ABSENT if value is None else str(rounded(value))


_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "agent_name": agent_name,
    "band": reliability_band,
    "calls": _calls,
    "chart": _chart,
    "flow": _flow,
    "grouped": grouped,
    "headed": headed,
    "id": id_of,
    "iso": instant,
    "known": _known,
    "known_first": _known_first,
    "many": count,
    "moment": moment,
    "name": clean,
    "number": number,
    "percent": percent,
    "place": place,
    "pressure": pressure_chart,
    "reason": _reason,
    "route": _route,
    "runs": run_lines,
    "score": _score,
    "sentence": _sentence,
    "splits": splits,
    "task_flows": _task_flows,
    "tasks": _tasks,
    "tier_symbol": SYMBOLS.__getitem__,
    "worst_sessions": _worst_sessions,
    "zero": _zero,
}
