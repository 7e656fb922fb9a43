"""The report as Markdown: for a pull request, a wiki, a chat. Its template is templates/report.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from otel_reliability.metrics.stability.tables import TaskEffects, TaskRow
from otel_reliability.report import groups, words
from otel_reliability.report.changes import SYMBOLS
from otel_reliability.report.reasons import differing
from otel_reliability.report.terminal import ordered_tasks
from otel_reliability.report.text import agent_name, clean, count, grouped, measured, number, percent, place
from otel_reliability.report.view import AgentView, ReportView

MAX_TASKS: Final = 20
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~$])")


def escaped(text: str) -> str:
    r"""Return text that Markdown shows unchanged: a tool may be called `<b>` or `a|b`.

    >>> print(escaped("get_order | <b>"))
    get\_order \| \<b\>
    """
    return _SPECIAL.sub(r"\\\1", text)


def render(report: ReportView) -> str:
    """Return the report, or, with a baseline, how it differs from that."""
    return _templates().get_template("report.md").render(report=report)


def fates(spans: Mapping[str, int]) -> str:
    """Return the spans by disposition."""
    return ", ".join(f"{amount:,} {name}" for name, amount in spans.items() if amount and name != "received")


def _tasks(agent: AgentView) -> list[tuple[TaskRow, TaskEffects | None]]:
    return [pair for pair in ordered_tasks(agent) if pair[0].task_id is not None][:MAX_TASKS]


@cache
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,  # noqa: S701  Markdown escapes by signs of its own: `escaped`
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    filters: dict[str, Any] = {
        "agent_name": agent_name,
        "differing": differing,
        "escaped": escaped,
        "fates": fates,
        "grouped": grouped,
        "many": count,
        "name": clean,
        "number": number,
        "percent": percent,
        "place": place,
        "tasks": _tasks,
    }
    found.filters.update(filters)
    known: dict[str, Any] = found.globals
    known.update(groups=groups, made_of=groups.made_of, measured=measured, specs=groups.ALL_SPECS, symbols=SYMBOLS)
    known.update({name: getattr(words, name) for name in ("about", "about_chance", "compared", "interval", "meaning")})
    return found
