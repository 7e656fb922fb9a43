"""The report as Markdown: for a pull request, a wiki, a chat. Its
template is templates/report.md.
"""

from __future__ import annotations

import re
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from otel_reliability.report import sections, words
from otel_reliability.report.changes import SYMBOLS
from otel_reliability.report.sections import Cell
from otel_reliability.report.text import FILTERS
from otel_reliability.report.view import ReportView

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|#~$]|:(?=//)|(?<=www)\.)")
_MENTION: Final = re.compile(r"([@#])(?=\w)")
_WORD_JOINER: Final = "\u2060"
"""An invisible sign. A forge makes no link of a name that follows it."""


def escaped(text: Cell) -> str:
    r"""Return text that Markdown shows unchanged: a tool may be called `<b>` or `a|b`. `@name`
    mentions no one, and neither `#7` nor an address becomes a link.

    >>> print(escaped("get_order | <b>"))
    get\_order \| \<b\>
    """
    return _MENTION.sub(rf"\1{_WORD_JOINER}", _SPECIAL.sub(r"\\\1", str(text)))


def render(report: ReportView) -> str:
    """Return the report, or, with a baseline, how it differs from that."""
    return (
        _templates()
        .get_template("report.md")
        .render(report=report, agents=words.worst_first(report.agents))
    )


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
    found.filters.update(FILTERS, escaped=escaped)
    known: dict[str, Any] = found.globals
    known.update(
        comparison=partial(sections.comparison, brief=False),
        costs=sections.costs,
        details=partial(sections.details, brief=False),
        gaps=sections.gaps,
        data_quality=sections.data_quality,
        overview=sections.overview,
        points_lost=sections.points_lost,
        request_groups=partial(sections.request_groups, brief=False),
        symbols=SYMBOLS,
        words=words,
    )
    return found
