"""Parents that go in circles, and gaps across traces: the same runs in any order, with or without a
pause between.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from otel_reliability.config import AssemblySettings
from otel_reliability.model.run import CloseReason, Run, RunChange
from otel_reliability.model.span import AgentSpan
from otel_reliability.testing import agent, handoff, model, other, span_id, tool, trace_id
from tests.assembly.rebuilding import Watched

PAUSE = 25.0
SETTINGS = AssemblySettings(linger=2.0, idle_timeout=20.0, reopen=600.0)
"""What has no root is given up within the pause, and comes back when more of it does."""


def linked(span: AgentSpan, trace: int, number: int) -> AgentSpan:
    """The span, hanging by a link on a span of another trace."""
    return replace(span, link=(trace_id(trace), span_id(number)))


CASES = {
    "a circle through an agent, beside a tool that is its own parent": [
        tool(2, 4, end=0.1),
        tool(3, 4, end=0.1),
        agent(4, 5, end=0.1),
        agent(5, 3, end=0.1),
        tool(6, 6, end=0.1),
    ],
    "a circle through an unknown span, with an agent below it": [
        tool(2, 3, start=2, end=3),
        other(3, 2, end=4),
        agent(4, 3, end=1),
        model(5, 4, end=1),
    ],
    "an unknown span that is its own parent": [
        other(2, 2, remote=True, end=4),
        agent(3, 2, start=1, end=2),
        model(4, 2, start=1, end=2),
    ],
    "work that hangs on a span of another trace with the same id": [
        tool(9, 9, end=0.3),
        model(3, 8, start=0.5, end=0.5),
        linked(other(8, end=2), trace=2, number=9),
    ],
    "work that may be claimed by agents of the trace before": [
        agent(2, 1, trace=2, start=4, end=8.5),
        other(4, 3, trace=2, start=8.9, end=8.9),
        agent(3, trace=2, start=8.9, end=9),
        handoff(5, 6, "support", trace=3, start=6.7, end=6.7),
        linked(other(7, trace=3, start=8.9, end=6.8), trace=2, number=4),
        tool(8, 7, trace=3, start=5.7, end=5.7),
    ],
}


@pytest.mark.parametrize("spans", CASES.values(), ids=CASES)
def test_order_changes_nothing(spans: Sequence[AgentSpan]) -> None:
    expected = after(spans)
    for order in itertools.islice(itertools.permutations(spans), 720):
        assert after(order) == expected


@pytest.mark.parametrize("spans", CASES.values(), ids=CASES)
def test_a_pause_changes_nothing(spans: Sequence[AgentSpan]) -> None:
    """Nor is it another when all that was known for a while was one of them, and a run had been
    told of it.
    """
    expected = after(spans)
    for at, first in enumerate(spans):
        rest = [*spans[:at], *spans[at + 1 :]]
        assert after([first], rest) == expected
        assert after([first], rest[::-1]) == expected


def after(*batches: Sequence[AgentSpan]) -> dict[str, Run]:
    watched = Watched(SETTINGS)
    runs = dict[str, Run]()
    for batch in batches:
        watched.add(*batch)
        keep(runs, watched.wait(PAUSE))
    keep(runs, watched.end())
    return {run_id: replace(run, closed_by=CloseReason.ROOT) for run_id, run in runs.items()}


def keep(runs: dict[str, Run], changes: Sequence[tuple[RunChange, Run]]) -> None:
    """The last that was told of each run."""
    for change, run in changes:
        if change is RunChange.WITHDRAWN:
            del runs[run.run_id]
        else:
            runs[run.run_id] = run
