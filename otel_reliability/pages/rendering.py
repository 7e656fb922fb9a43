"""The templates, what they may ask for, and the files that pages bring along."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from otel_reliability.change.sentences import moment
from otel_reliability.metrics.sessions import reliability_band
from otel_reliability.pages.agent import AgentView
from otel_reliability.pages.course import WARM_UP
from otel_reliability.pages.fleet import AgentLine, Fleet
from otel_reliability.pages.flow import USUAL
from otel_reliability.pages.run_lines import DEGREES
from otel_reliability.report.text import ABSENT, clean, count, grouped, instant, number, percent, route

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""What pages bring along, by ending."""
SIGNS: Final[Mapping[str, str]] = {"STABLE": "●", "VARIABLE": "◆", "UNSTABLE": "▲", "CRITICAL": "■", "none": "○"}
"""A shape for each tier: colour alone tells nothing to whoever cannot see it."""
SORTS: Final[Mapping[str, str]] = {
    "score": "lowest score",
    "best": "highest score",
    "trend": "largest fall",
    "name": "name",
    "runs": "most runs",
    "last": "latest run",
}
"""What the table calls the ways to sort it."""
POLL: Final = 3_000
"""Milliseconds after which a page asks whether it is still true."""


class Doors(NamedTuple):
    """Where spans can be sent, as an empty table tells; empty where a door is closed. `token`: whether one is needed."""

    http: str = ""
    grpc: str = ""
    token: bool = False


class Asset(NamedTuple):
    """A file that pages bring along: its bytes, its media type, and a short digest of it."""

    body: bytes
    kind: str
    digest: str


@cache
def assets() -> Mapping[str, Asset]:
    """All of them, by their path below `static`."""
    files = (file for file in sorted(STATIC.rglob("*")) if file.suffix in TYPES)
    return {file.relative_to(STATIC).as_posix(): _asset(file) for file in files}


def _asset(file: Path) -> Asset:
    body = file.read_bytes()
    return Asset(body, TYPES[file.suffix], hashlib.blake2b(body, digest_size=6).hexdigest())


def fleet_page(fleet: Fleet, doors: Doors, *, window: str, since_ns: int) -> str:
    """The page of all agents."""
    return _page(
        "fleet.html", fleet=fleet, link=_link, sorts=SORTS, window=window, since_ns=since_ns, **doors._asdict()
    )


def agent_page(view: AgentView, *, window: str, since_ns: int) -> str:
    """The page of one agent."""
    since = f"The score of the {window}, since this service started at {moment(since_ns)}."
    return _page("agent.html", view=view, since=since)


def message_page(title: str, text: str, *, poll: int = 0) -> str:
    """A page that says why there is nothing else; it asks again only where that will change by itself."""
    return templates().get_template("message.html").render(static=_static, poll=poll, title=title, text=text)


def report_page(name: str, **facts: Any) -> str:
    """A page that is a file of its own."""
    return templates().get_template(name).render(poll=0, **facts)


def _page(name: str, **facts: Any) -> str:
    return templates().get_template(name).render(static=_static, poll=POLL, **facts)


def _link(line: AgentLine) -> str:
    return line.path


def _static(name: str) -> str:
    return f"/static/{name}?{assets()[name].digest}"


@cache
def templates() -> Environment:
    """Everything that is put into a template is escaped, and nothing may be missing."""
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
    known.update(degrees=DEGREES, usual_from=USUAL, warm_up=WARM_UP, version=version("otel-reliability"))
    return found


def _chart(view: AgentView) -> str:
    """The points and marks of a curve, in seconds, as its script reads them."""
    points = [[round(point.ns / 1e9, 3), round(point.score, 2)] for point in view.points]
    marks = [[round(mark.since_ns / 1e9, 3), mark.sentence] for mark in view.changes.marks]
    return json.dumps({"points": points, "marks": marks})


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', ':', '!', '?')) else '.'}"


def _zero(amount: int) -> str:
    return f"{amount:,}" if amount else ABSENT


def _route(steps: Sequence[str]) -> str:
    return route(steps, most=12)


_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "iso": instant,
    "moment": moment,
    "name": clean,
    "percent": percent,
    "many": count,
    "grouped": grouped,
    "number": number,
    "route": _route,
    "zero": _zero,
    "sentence": _sentence,
    "band": reliability_band,
    "chart": _chart,
    "tier_sign": SIGNS.__getitem__,
}
