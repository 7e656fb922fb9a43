from __future__ import annotations

import importlib.util

import pytest

from tests.harm.hosts import run_host


@pytest.mark.skipif(importlib.util.find_spec("gevent") is None, reason="gevent is not installed")
def test_runs_of_greenlets_are_kept_apart() -> None:
    host = run_host(
        """
import gevent, threading
from opentelemetry import context
provider = meters()
tracing = TracerProvider(resource=RESOURCE)
tracing.add_span_processor(ReliabilitySpanProcessor(meter_provider=provider))
tracer = tracing.get_tracer("test")
def work(number):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent-{number % 3}"}
    with tracer.start_as_current_span("invoke_agent", attributes=attributes):
        for tool in ("search", "reply"):
            gevent.sleep(0)
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            with tracer.start_as_current_span("t", attributes=attributes):
                gevent.sleep(0)
gevent.joinall([gevent.spawn(work, number) for number in range(300)], raise_error=True)
""",
        first="from gevent import monkey\nmonkey.patch_all()\n",
    )

    assert host.code == 0
    assert "otel_reliability" not in host.err
    assert host.value("agent.reliability.runs") == 300
    assert host.value("agent.reliability.runs", gen_ai__agent__name="agent-0") == 100
    assert host.value("agent.reliability.path_entropy", gen_ai__agent__name="agent-0") == 0
