"""The templates of pages, the functions they use, and the static files that pages load."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from otel_reliability import dashboards
from otel_reliability.change.sentences import moment
from otel_reliability.config import Settings
from otel_reliability.contrast.parting import Ends
from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.tier import rounded
from otel_reliability.model.run import AgentKey, Outcome, Run
from otel_reliability.report import sections, words
from otel_reliability.report.compression import COMPRESSION
from otel_reliability.report.findings import FAILURES, UNUSUAL, WASTE
from otel_reliability.report.history import MIN_RUNS, failed_shares
from otel_reliability.report.proposal import UnknownLines
from otel_reliability.report.run_fields import facts_of
from otel_reliability.report.text import ABSENT, FILTERS, measured
from otel_reliability.report.view import AgentView, ScoreReason
from otel_reliability.ui.agent_list import SORTS, AgentList, address, id_of
from otel_reliability.ui.charts import HIGH, curve, pressure_chart
from otel_reliability.ui.flow import COMMON, Flow, Steps, flow_of
from otel_reliability.ui.live import comparison, headed, names_of_versions
from otel_reliability.ui.runs import (
    DEGREES,
    FLAGS,
    MAX_COMPARED,
    RunChoice,
    RunStore,
    call_lines,
    default_sides,
    run_lines,
    steps_of,
    versions_of,
)

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"
TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types of the static files, by ending."""
SYMBOLS: Final[Mapping[str, str]] = {
    "STABLE": "●",
    "VARIABLE": "◆",
    "UNSTABLE": "▲",
    "CRITICAL": "■",
    "FAILING": "✖",
    "UNDECIDED": "○",
    "none": "○",
}
"""A shape for each tier and verdict: colour alone is not enough for readers who cannot see it."""
SIDES: Final = ("before.", "after.")
"""Prefixes of the two sides of a comparison in an address."""
_TRACE: Final = re.compile(r"\b([0-9a-f]{32})\b")
_WORD_ENDS: Final = re.compile(r"(?<=[_./:@-])(?=\w)|(?<=[a-z])(?=[A-Z])")
POLL: Final = 3_000
"""Milliseconds after which a page asks whether it is still current."""
MAX_FLOWS: Final = 3
"""Tasks whose paths have a graph of their own, those whose runs differ most."""
GROUPS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("The score and its parts", ("score", *PENALTIES)),
    ("Other readings", sections.STABILITY),
    ("Evaluation", sections.EVALUATION),
    ("Work on files", sections.CODING),
    ("Repeated attempts", ("pass_at_k", "pass_hat_k", *sections.PASSES)),
    ("Sessions", sections.SESSION_GAUGES),
)
ACTED_ON: Final = (
    "success_rate",
    "error_rate",
    "score",
    "pass_hat_k",
    "retry_explosion_share",
    "loop_share",
    "token_budget_pressure",
    "cost_per_run",
)
"""The numbers that people act on, with which the page of an agent begins."""
CONTENTS: Final = (
    ("why", "Why the score"),
    ("paths", "Paths"),
    ("runs", "Recent runs"),
    ("more", "Calls, tokens, tasks, sessions"),
    ("numbers", "All readings"),
)
"""Parts of the page of an agent that are always there."""
DIMENSIONS: Final = ("reliability", "consistency", "predictability", "robustness", "safety")
"""The aggregates of the evaluation."""


class Endpoints(NamedTuple):
    """The endpoints that receive spans, for the empty table; empty where an endpoint is off.
    `token`: whether one is required.
    """

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
    bodies = {file: file.read_bytes() for file in sorted(STATIC.rglob("*")) if file.suffix in TYPES}
    return {
        file.relative_to(STATIC).as_posix(): Asset(
            body, TYPES[file.suffix], hashlib.blake2b(body, digest_size=6).hexdigest()
        )
        for file, body in bodies.items()
    }


def agents_page(
    agents: AgentList,
    endpoints: Endpoints,
    *,
    window: str,
    unknown: UnknownLines | None = None,
    arrived: Sequence[str] = (),
) -> str:
    """Return the page of all agents. `arrived`: what has arrived, where there is none."""
    facts = {**endpoints._asdict(), "agents": agents, "window": window, "unknown": unknown}
    facts["arrived"] = arrived
    return _page("agents.html", link=address, sorts=SORTS, **facts)


def agent_page(agent: AgentView, *, window: str, trace_url: str | None = None) -> str:
    """Return the page of one agent."""
    since = f"The score of the {window}, over at most a week."
    return _agent_page("agent.html", agent, trace_url, here="", since=since)


def runs_page(
    agent: AgentView, runs: Sequence[Run], choice: RunChoice, *, trace_url: str | None = None
) -> str:
    """Return the page of the last runs of an agent, those that are chosen."""
    return _agent_page(
        "runs.html",
        agent,
        trace_url,
        here="Runs",
        lines=run_lines(agent, [run for run in runs if choice.holds(run, agent.retry_threshold)]),
        total=len(runs),
        choice=choice,
        fields=RunChoice._fields,
        outcomes=[outcome.value for outcome in Outcome],
        flags=list(FLAGS),
        versions=versions_of(runs),
        export=partial(_export, agent.key, choice),
    )


def run_page(agent: AgentView, run: Run, *, trace_url: str | None = None) -> str:
    """Return the page of one run: its facts and its steps."""
    [line] = run_lines(agent, [run])
    facts = {"run": run, "line": line, "steps": steps_of(run), "facts": facts_of(run)}
    return _agent_page("run.html", agent, trace_url, here="Run", **facts)


def compare_page(
    agent: AgentView, store: RunStore, query: Mapping[str, str], settings: Settings
) -> str:
    """Return the page that compares two versions or two times of an agent."""
    runs = store.last(agent.key, most=MAX_COMPARED)
    choices = [RunChoice.of(query, prefix) for prefix in SIDES]
    if not any(any(choice) for choice in choices):
        choices = default_sides(runs)
    sides = [store.last(agent.key, choice, MAX_COMPARED) for choice in choices]
    each = comparison(agent.key, sides[0], sides[1], settings) if all(sides) else None
    titled = list(zip(SIDES, ("Before", "After"), choices, sides, strict=True))
    return _agent_page(
        "compare.html",
        agent,
        None,
        here="Compare",
        poll=0,
        sides=titled,
        versions=names_of_versions(runs),
        each=each,
    )


def alerts_page() -> str:
    """Return the runbook of the alerts that the package ships, each with an id that
    alerts link to.
    """
    text = files(dashboards).joinpath(dashboards.RUNBOOK).read_text(encoding="utf-8")
    made = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    runbook = re.sub(
        "<h2>(.*?)</h2>", lambda title: f'<h2 id="{title[1].lower()}">{title[1]}</h2>', made
    )
    return _page("alerts.html", poll=0, runbook=Markup(runbook))  # noqa: S704  a file of ours, not data of spans


def message_page(title: str, text: str, *, poll: int = 0) -> str:
    """Return a page with a message; it polls only where the message will disappear by itself."""
    return _page("message.html", poll=poll, title=title, text=text)


def _agent_page(name: str, agent: AgentView, trace_url: str | None, **facts: Any) -> str:
    return _page(
        name, agent=agent, address=partial(address, agent.key), trace_url=trace_url, **facts
    )


def _export(key: AgentKey, choice: RunChoice, form: str) -> str:
    where = {"namespace": key.service_namespace, "environment": key.environment}
    query = urlencode(
        {
            "format": form,
            **where,
            **{name: value for name, value in choice._asdict().items() if value},
        }
    )
    return f"/api/v1{address(key, '/runs').partition('?')[0]}?{query}"


def _page(name: str, **facts: Any) -> str:
    return (
        templates()
        .get_template(name)
        .render(static=_static, **{"poll": POLL, "trace_url": None, **facts})
    )


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
    found.filters.update(FILTERS, **_FILTERS)
    known: dict[str, Any] = found.globals
    known.update(
        common_from=COMMON,
        compression=COMPRESSION,
        curve=curve,
        degrees=DEGREES,
        acted_on=ACTED_ON,
        contents=CONTENTS,
        dimensions=DIMENSIONS,
        failures=FAILURES,
        groups=GROUPS,
        high=HIGH,
        made_of=sections.made_of,
        measured=measured,
        min_runs=MIN_RUNS,
        specs=ALL_SPECS,
        unusual=UNUSUAL,
        version=version("otel-reliability"),
        waste=WASTE,
        words=words,
    )
    return found


# --- What templates compute of a view -------------------------------------------------------------


def _chart(agent: AgentView) -> str:
    """Return the points and marks of a curve, in seconds, for its script."""
    points = [[round(point.ns / 1e9, 3), round(point.score, 2)] for point in agent.history]
    marks = () if agent.change is None else agent.change.marks
    return json.dumps(
        {"points": points, "marks": [[round(mark.since / 1e9, 3), mark.sentence] for mark in marks]}
    )


def _flow(agent: AgentView) -> Flow | None:
    paths: Counter[Steps] = Counter()
    for (_, steps), runs in agent.paths.items():
        paths[steps] += runs
    failing: Counter[Steps] = Counter()
    known: Counter[Steps] = Counter()
    for (_, steps), found in agent.path_ends.items():
        failing[steps] += found.failing
        known[steps] += found.known
    return flow_of(paths, ends={steps: Ends(failing[steps], known[steps]) for steps in known})


def _task_flows(agent: AgentView) -> list[Flow]:
    tasks = [one.task_id for one in agent.findings.divergences if one.task_id is not None][
        :MAX_FLOWS
    ]
    paths = {
        task: {steps: runs for (of, steps), runs in agent.paths.items() if of == task}
        for task in tasks
    }
    ends = {
        task: {steps: found for (of, steps), found in agent.path_ends.items() if of == task}
        for task in tasks
    }
    found = [flow_of(paths[task], task, ends[task]) for task in tasks]
    return [flow for flow in found if flow is not None]


def _reason(agent: AgentView, title: str) -> ScoreReason | None:
    return next((reason for reason in agent.findings.reasons if reason.title == title), None)


def _breakable(name: str) -> Markup:
    """Return a name that a line may break behind the signs that part its words, and only there.

    >>> _breakable("refund_agent-v2")
    Markup('refund_<wbr>agent-<wbr>v2')
    """
    parts = _WORD_ENDS.split(name)
    return Markup("<wbr>").join(escape(part) for part in parts)


def _traces(text: str, url: str | None, digits: int = 32) -> Markup:
    """Return text whose trace ids are links to the trace store, where its address is known,
    shortened to so many digits.

    >>> text = str(_traces("a" * 32 + " 3x", "http://jaeger/trace/{trace_id}", 4))
    >>> text.startswith('<a href="http://jaeger/trace/aaaa'), text.endswith(">aaaa</code></a> 3x")
    (True, True)
    """

    def shown(found: str) -> Markup:
        code = Markup('<code title="trace {}">{}</code>').format(found, found[:digits])
        if url is None:
            return code
        return Markup('<a href="{}" rel="noreferrer">{}</a>').format(
            url.replace("{trace_id}", found), code
        )

    parts = _TRACE.split(text)
    return Markup("").join(shown(part) if at % 2 else escape(part) for at, part in enumerate(parts))


def _quality(agent: AgentView) -> Iterator[sections.Section]:
    return sections.data_quality(agent.data_quality)


def _known(agent: AgentView, names: Sequence[str]) -> list[str]:
    return [name for name in names if agent.metrics[name].value is not None]


def _unbroken(text: str) -> str:
    """Return text in which no line breaks between a number and its percent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', ':', '!', '?')) else '.'}"


def _score(value: float | None) -> str:
    return ABSENT if value is None else str(rounded(value))


_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "breakable": _breakable,
    "traces": _traces,
    "calls": call_lines,
    "chart": _chart,
    "failed_shares": failed_shares,
    "flow": _flow,
    "gaps": sections.gaps,
    "data_quality": _quality,
    "headed": headed,
    "id": id_of,
    "known": _known,
    "moment": moment,
    "pressure": pressure_chart,
    "reason": _reason,
    "runs": run_lines,
    "score": _score,
    "sentence": _sentence,
    "unbroken": _unbroken,
    "sessions": partial(sections.sessions, brief=False),
    "task_flows": _task_flows,
    "tasks": partial(sections.tasks, brief=False),
    "tier_symbol": SYMBOLS.__getitem__,
}
