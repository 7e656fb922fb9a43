from __future__ import annotations

import ast
import functools
import os

import pytest

from tests.harm import hosts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

run_host = functools.partial(hosts.run_host, fresh=True)  # what it forks may be at an import

SETUP = """
import os
provider = meters()
tracing = TracerProvider(resource=RESOURCE)
tracing.add_span_processor(ReliabilitySpanProcessor(meter_provider=provider))
tracer = tracing.get_tracer("test")
sys.stdout.flush()
"""


def test_a_forked_child_begins_with_nothing() -> None:
    host = run_host(
        f"""{SETUP}
agents = lambda: tracing._active_span_processor._span_processors[0]._live.engine.agents
values = lambda: {{key.agent: agents().agent(key).windows["recent"].runs for key in agents().keys()}}
agent(tracer, name="before")
tracing.force_flush()
flying = {{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "flying"}}
with tracer.start_as_current_span("invoke_agent flying", attributes=flying):
    child = os.fork()
    agent(tracer, name="nested" if child else "child")
    if not child:
        tracing.force_flush()
        print("child", values(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
tracing.force_flush()
print("parent", values(), flush=True)
os._exit(0)
"""
    )

    told = dict(
        line.split(" ", 1) for line in host.out.splitlines() if line.startswith(("child", "parent"))
    )
    assert host.err == ""
    assert ast.literal_eval(told["parent"]) == {"before": 1, "flying": 1, "nested": 1}
    assert ast.literal_eval(told["child"]) == {"child": 1}


def test_a_lock_held_while_forking_is_free_in_the_child() -> None:
    """Another thread of the parent was at work in the engine: the child, where that thread is not,
    works.
    """
    host = run_host(
        f"""{SETUP}
import threading, time
engine = tracing._active_span_processor._span_processors[0]._live.engine
inside = threading.Event()
threading.Thread(target=lambda: engine.read(lambda _: (inside.set(), time.sleep(60))), daemon=True).start()
inside.wait()
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status))
agent(tracer)
began = time.monotonic()
os._exit(0 if tracing.force_flush() and engine.closed["force_flush"] == 1 and time.monotonic() - began < 30 else 5)
"""
    )

    assert (host.code, host.err) == (0, "")


def test_workers_forked_in_advance_each_tell_their_own() -> None:
    host = run_host(
        f"""{SETUP}
import atexit
workers = []
for number in range(2):
    worker = os.fork()
    if not worker:
        for _ in range(number + 1):
            agent(tracer, name=f"worker-{{number}}")
        sys.exit(0)
    os.waitpid(worker, 0)
os._exit(0)
"""
    )

    assert host.code == 0
    told = [
        (point["attributes"]["gen_ai.agent.name"], point["value"])
        for collection in host.collections()
        for scope in collection["resource_metrics"][0]["scope_metrics"]
        for metric in scope["metrics"]
        if metric["name"] == "agent.reliability.runs"
        for point in metric["data"]["data_points"]
        if point["value"]
    ]
    assert sorted(told) == [("worker-0", 1), ("worker-1", 2)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_pool_work_however_they_are_started(method: str) -> None:
    host = run_host(
        f"""{SETUP}
import multiprocessing
agent(tracer, name="parent")
pool = multiprocessing.get_context({method!r}).Pool(2)
print("pool", pool.map(abs, [-1, -2]))
pool.close()
pool.join()
tracing.force_flush()
"""
    )

    assert (host.code, host.err) == (0, "")
    assert "pool [1, 2]" in host.out
    assert host.value("agent.reliability.runs", gen_ai__agent__name="parent") == 1


def test_workers_that_cannot_be_told_apart_are_warned_of_once() -> None:
    """Two processes that write the same series overwrite each other's numbers. Newer SDKs give a
    child an id of its own.
    """
    host = run_host(
        f"""{SETUP.replace("RESOURCE", 'Resource({"service.name": "shop"})')}
child = os.fork()
if child:
    os.waitpid(child, 0)
else:
    for _ in range(3):
        agent(tracer)
    print("service.instance.id" in tracing.resource.attributes, flush=True)
os._exit(0)
"""
    )
    told_apart = host.out.strip() == "True"
    assert host.err.count("service.instance.id") == (0 if told_apart else 1)

    known = run_host(f"{SETUP}\nchild = os.fork()\nagent(tracer)\nos._exit(0)")
    assert known.err == ""
