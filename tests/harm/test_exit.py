from __future__ import annotations

import pytest

from tests.harm.hosts import run_host

SETUP = """
metrics.set_meter_provider(meters())
trace.set_tracer_provider(TracerProvider(resource=RESOURCE))
trace.get_tracer_provider().add_span_processor({door})
tracer = trace.get_tracer("test")
"""
DOORS = {
    "processor": "ReliabilitySpanProcessor()",
    "exporter": "BatchSpanProcessor(ReliabilitySpanExporter())",
}


@pytest.fixture(params=DOORS)
def setup(request: pytest.FixtureRequest) -> str:
    return SETUP.format(door=DOORS[request.param])


IN_A_THREAD = "import threading; threading.Thread(target=agent, args=(tracer,)).start()"
ENDS = {
    "its end": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an exception": ("raise ValueError('of the host')", 1),
}


@pytest.mark.parametrize(
    ("end", "code"), [*ENDS.values(), (IN_A_THREAD, 0)], ids=[*ENDS, "another thread"]
)
def test_the_last_collection_has_every_run(setup: str, end: str, code: int) -> None:
    host = run_host(f"{setup}\nagent(tracer)\n{end}")

    assert host.code == code
    runs = 2 if end == IN_A_THREAD else 1
    assert host.value("agent.reliability.runs", outcome="completed") == runs
    assert host.value("agent.reliability.window.runs") == runs
    assert host.value("otel_reliability.runs.open") == 0
    assert "otel_reliability" not in host.err


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_metrics_that_were_set_up_last_are_not_collected_before_runs_close(door: str) -> None:
    """Providers end in the reverse order of their making."""
    first, *rest = SETUP.format(door=door).strip().splitlines()
    host = run_host("\n".join([*rest, first, "agent(tracer)"]))

    assert host.code == 0
    assert host.value("agent.reliability.runs", outcome="completed") == 1
    assert host.value("otel_reliability.runs.open") == 0


def test_a_run_in_the_middle_is_closed_as_it_is(setup: str) -> None:
    host = run_host(
        f"""{setup}
with tracer.start_as_current_span("invoke_agent a", attributes={{"gen_ai.operation.name": "invoke_agent"}}):
    agent(tracer, name="helper")
    tool = tracer.start_span("execute_tool t", attributes={{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}})
    tool.end()
    import os, threading
    threading.Thread(target=lambda: None).start()
    sys.exit(0)
"""
    )

    assert host.code == 0
    assert host.value("otel_reliability.runs.open") == 0
    assert host.value("agent.reliability.tool_calls") == 3


@pytest.mark.parametrize("order", ["tracing metrics", "metrics tracing", "tracing", "metrics"])
def test_providers_shut_down_by_hand_in_any_order(setup: str, order: str) -> None:
    by = {
        "tracing": "trace.get_tracer_provider().shutdown()",
        "metrics": "metrics.get_meter_provider().shutdown()",
    }
    host = run_host(f"{setup}\nagent(tracer)\n" + "\n".join(by[step] for step in order.split()))

    assert (host.code, host.err) == (0, "")
    if order.startswith("tracing"):
        assert host.value("agent.reliability.runs") == 1


def test_a_termination_signal_in_the_middle_of_our_work(setup: str) -> None:
    """A handler that shuts everything down while a hook of ours runs on the same thread neither
    hangs nor fails.

    The SDK's own threads wait for the interrupted one, so the handler gives their shutdown a
    tenth of a second in place of 30.
    """
    host = run_host(
        f"""{setup}
import os, signal
from opentelemetry.sdk._shared_internal import BatchProcessor
from otel_reliability.engine import Engine
BatchProcessor.shutdown.__defaults__ = (100,)
def stop(*_):
    trace.get_tracer_provider().shutdown()
    metrics.get_meter_provider().shutdown(timeout_millis=100)
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
agent(tracer)
receive = Engine._receive
def interrupted(self, *received, **named):
    receive(self, *received, **named)
    Engine._receive = receive
    os.kill(os.getpid(), signal.SIGTERM)
Engine._receive = interrupted
trace.get_tracer_provider().force_flush()
metrics.get_meter_provider().force_flush()
"""
    )

    assert host.code == 7
    assert "Traceback" not in host.err
