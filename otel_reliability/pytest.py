"""A pytest plug-in: record the agent runs of a test, and check them against targets in one line.

    def test_support_agent(reliability):
        for _ in range(5):
            support_agent.run("refund order 1234")
        reliability.require("score>=80", "retry_explosion<=0")

The fixture adds its processor to the global TracerProvider, if one is set; add it to another one yourself:
`provider.add_span_processor(reliability.processor)`. Targets are those of `otel-reliability gate`, and so are the numbers: the
runs are rebuilt from the spans as from a file.

pytest loads this in every suite where the package is installed, so it loads nothing before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from otel_reliability.report.agent_runs import AgentRuns


@pytest.fixture
def reliability() -> Iterator[AgentRuns]:
    """The agent runs of this test: `require` targets of them, or use `runs`, `report` and `measure()`."""
    from opentelemetry import trace  # noqa: PLC0415  see above

    from otel_reliability.report.agent_runs import AgentRuns  # noqa: PLC0415

    found = AgentRuns()
    provider: Any = trace.get_tracer_provider()
    if hasattr(provider, "add_span_processor"):
        provider.add_span_processor(found.processor)
    yield found
    found.processor.stop()
