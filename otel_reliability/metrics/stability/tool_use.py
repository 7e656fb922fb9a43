"""Which tools the runs used, and which of them only rarely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from otel_reliability.model.row import BASELINE, Row

RARE: Final = 0.2
"""A tool that fewer than one run in five uses is rare."""


class ToolUse(NamedTuple):
    """One tool: how many runs used it, their share of the runs, how many calls they made. `rare`: fewer than one run in five."""

    tool: str
    runs: int
    share: float
    calls: int
    rare: bool


def tool_use(rows: Iterable[Row]) -> list[ToolUse]:
    """The tools of all runs whose tools can be observed, the most used first.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> found = tool_use(rows_of(*["search reply"] * 8, "search search reply", "search wipe reply"))
    >>> [(use.tool, use.share, use.calls) for use in found if use.rare]
    [('wipe', 0.1, 1)]
    """
    paths = [row.path for row in rows if row.path is not None and row.condition == BASELINE]
    users = Counter(tool for path in paths for tool in path.tools)
    calls: Counter[str] = Counter()
    for path in paths:
        calls.update(dict(path.counts))
    uses = (ToolUse(tool, runs, share := runs / len(paths), calls[tool], share < RARE) for tool, runs in users.items())
    return sorted(uses, key=lambda use: (-use.runs, use.tool))
