"""A report as one HTML file: the pages of agents, with everything they need inside it."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from markupsafe import Markup

from otel_reliability.model.run import AgentKey
from otel_reliability.report.text import count, span_of_time
from otel_reliability.report.view import ReportView
from otel_reliability.report.words import about_recording, worst_first
from otel_reliability.ui.agent_list import bar_of, id_of, line_of_view, verdict_counts
from otel_reliability.ui.rendering import assets, templates

MAX_AGENTS: Final = 100
"""Agents that are shown in full, those with the lowest scores; the table names all."""
STYLES: Final = ("vendor/uplot/uPlot.min.css", "page.css")
SCRIPTS: Final = ("vendor/uplot/uPlot.iife.min.js", "chart.js")


def render(report: ReportView, trace_url: str | None = None) -> str:
    """Return the report on a recording. `trace_url`: the address of a trace, with `{trace_id}`,
    where traces have one.
    """
    agents = worst_first(report.agents)
    lines = [line_of_view(agent) for agent in agents]
    style, script = (Markup("\n").join(map(_inside, names)) for names in (STYLES, SCRIPTS))
    return (
        templates()
        .get_template("report.html")
        .render(
            poll=0,
            address=None,
            style=style,
            script=script,
            policy=(
                f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src "
                f"{_hash(script)}"
            ),
            agents=agents[:MAX_AGENTS],
            linked=frozenset(agent.key for agent in agents[:MAX_AGENTS]),
            lines=lines,
            verdicts=verdict_counts(lines),
            bar=bar_of(lines),
            link=_link,
            about_report=_about(report),
            comparisons=() if report.baseline is None else report.baseline.agents,
            trace_url=trace_url,
        )
    )


def _inside(name: str) -> Markup:
    """Return a static file as part of a page. None of them contains what would end it there."""
    return Markup(assets()[name].body.decode())  # noqa: S704  the files are ours, not data of spans


def _hash(text: str) -> str:
    """Return the source expression that allows this text in a page's policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _link(key: AgentKey) -> str:
    return f"#agent-{id_of(key)}"


def _about(report: ReportView) -> list[str]:
    agents = report.agents
    found = [f"{count(len(agents), 'agent')}, {count(sum(agent.runs for agent in agents), 'run')}"]
    if agents:
        start = min(agent.start for agent in agents)
        end = max(agent.end for agent in agents)
        found[0] += f"; {span_of_time(start, end)}"
    return [*found, *about_recording(report)]
