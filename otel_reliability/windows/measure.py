"""Every number about some runs, without an engine: for notebooks and test suites."""

from __future__ import annotations

from collections.abc import Iterable

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.run import Run
from otel_reliability.windows.paths import PathTable
from otel_reliability.windows.rows import row_of
from otel_reliability.windows.window import AgentWindow


def measure(runs: Iterable[Run], settings: Settings = DEFAULTS) -> AgentWindow:
    """Return a window over plain runs, as one agent's; at most `limits.rows`, the newest. Nested runs count like others.

    >>> from otel_reliability.model.run import Outcome
    >>> from otel_reliability.testing import run
    >>> outcomes = (Outcome.SUCCESS, Outcome.SUCCESS, Outcome.FAILURE)
    >>> window = measure(run(["search"], n, task_id="refund", outcome=outcome) for n, outcome in enumerate(outcomes))
    >>> window.reading("outcome_agreement").value, window.reading("pass_hat_k").note
    (0.1111, 'k = 3')
    """
    paths = PathTable()
    window = AgentWindow(WindowSettings("all", last=settings.limits.rows), settings)
    for run in runs:
        window.insert(row_of(run, paths))
    return window
