"""Names of agents of final runs: they name what comes later in their trace, if there is one name."""

from __future__ import annotations

import pytest

from otel_reliability.assembly.final_ids import FinalIds, remember
from otel_reliability.config import AssemblySettings
from otel_reliability.model.span import TraceId
from otel_reliability.testing import agent, tool, trace_id
from tests.assembly.rebuilding import Watched, rebuilt

SHORT = AssemblySettings(linger=1.0, idle_timeout=5.0, reopen=10.0, remember=1_000.0)
UNNAMED = "shop"


@pytest.mark.parametrize(
    ("names", "expected"), [(["a"], "a"), (["a", "b"], UNNAMED), (["a", "b", "c"], UNNAMED)]
)
def test_late_work_has_the_name_of_the_only_agent_of_its_final_trace(
    names: list[str], expected: str
) -> None:
    watched = Watched(SHORT)
    for number, name in enumerate(names, start=1):
        watched.add(agent(number, number - 1 or None, called=name), tool(50 + number, number, "x"))
    watched.wait(60.0)
    watched.add(tool(90, 80, "late"))
    changes = watched.wait(60.0)

    assert {run.key.agent for _, run in changes} == {expected}


def test_two_names_of_a_trace_are_remembered_at_most() -> None:
    spans = [agent(number, called=f"agent {number}") for number in range(1, 30)]
    final_ids: dict[TraceId, FinalIds] = {}
    remember(final_ids, spans, rebuilt(*spans))

    assert final_ids[trace_id(1)].agents == {"agent 1", "agent 10"}
