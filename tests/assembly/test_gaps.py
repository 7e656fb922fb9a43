"""A parent that never came, of which some say that it is in another process."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from otel_reliability.config import AssemblySettings
from otel_reliability.model.run import RunChange
from otel_reliability.model.span import AgentSpan, CompressionFacts, Kind
from otel_reliability.testing import agent, agent_span, model, other, tool
from tests.assembly.rebuilding import Watched, accounts_of, rebuilt

SETTINGS = AssemblySettings(linger=2.0, idle_timeout=12.0, reopen=60.0)
HERE = tool(2, 1, remote=False)
THERE = model(3, 1, remote=True)
BELOW = (tool(4, 5, remote=True), other(5, 1, remote=False))
"""It hangs on the same, by a span that is in between."""


@pytest.mark.parametrize("told", [*permutations((HERE, THERE)), *permutations((THERE, *BELOW))])
@pytest.mark.parametrize("pause", [0, 1, 5, 14])
def test_it_is_in_this_process_if_any_says_so(told: tuple[AgentSpan, ...], pause: int) -> None:
    watched = Watched(SETTINGS)
    for span in told:
        watched.add(span)
        watched.wait(pause)
    (run,) = [run for change, run in watched.end() if change is RunChange.FINAL]

    assert (run.span_count, run.implicit, run.incomplete) == (2, True, True)


def test_compression_belongs_to_run_whose_root_is_missing() -> None:
    """As it does once the root is there; alone it is no run."""
    compression = agent_span(Kind.COMPRESSION, CompressionFacts(), 3, 1, start=-1.0)
    (rootless,), (whole,) = rebuilt(compression, HERE), rebuilt(compression, HERE, agent(1))

    assert (rootless.incomplete, replace(rootless.compressions[0], agent="agent")) == (
        True,
        whole.compressions[0],
    )
    assert (rootless.start_ns, rootless.span_count) == (HERE.start_ns, 2)
    assert rebuilt(compression) == []
    assert accounts_of(compression, HERE) == {("used", ""): 2}
