"""A restart with windows of thousands of runs: the agents are loaded a little at a time, and nobody
waits for it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.bench_restart import multiply
from tests.real.waiting import until
from tests.real.web import Answer, ask
from tests.service.running import PROTOBUF, body_of, run_of
from tests.service.served import Services

pytestmark = pytest.mark.real

RUNS = 1_500
OTHER = "other"
"""An agent that sends meanwhile."""
AGENTS = 8
MAX_WAIT_S = 2.0
"""Loading all takes several times as long."""
HEADERS = {"Content-Type": PROTOBUF}
TOOLS = ["search", "read", "write", "plan", "fetch", "ask"]
WINDOWS = [{"name": "recent", "last": 100}, {"name": "day", "period": "24h"}]


def timed(waits: list[float], request: Callable[[], Answer]) -> Answer:
    began = time.monotonic()
    answer = request()
    waits.append(time.monotonic() - began)
    return answer


def test_no_scrape_and_no_post_waits_for_large_windows(serve: Services, tmp_path: Path) -> None:
    some = random.Random(1)
    begun = time.time() - 3_600
    state = tmp_path / "state"
    first = serve(state=state, windows=WINDOWS, assembly={"reopen": "1s"})
    for start in range(0, RUNS, 100):
        runs = [
            run_of(
                number + 1, some.choices(TOOLS, k=some.randint(4, 16)), "agent 1", begun + number
            )
            for number in range(start, start + 100)
        ]
        body = body_of(span for run in runs for span in run)
        assert ask(f"{first.http}/v1/traces", body=body, headers=HEADERS).status == 200
    until(lambda: first.sum("agent_reliability_runs_total") == RUNS, "all runs to be final")
    first.kill()
    multiply(state / "state.db", AGENTS)

    second = serve(state=state, windows=WINDOWS)
    scrapes = list[float]()
    posts = list[float]()
    shown = list[int]()
    url = f"http://{second.metrics_address}/metrics"
    while not shown or shown[-1] < AGENTS:
        text = timed(scrapes, lambda: ask(url)).text
        lines = [line for line in text.splitlines() if 'window="day"' in line and OTHER not in line]
        sizes = [line for line in lines if line.startswith("agent_reliability_window_runs{")]
        assert {line.rpartition(" ")[2] for line in sizes} <= {f"{RUNS}.0"}
        shown.append(len(sizes))
        body = body_of(run_of(RUNS + len(shown), ["search"], OTHER, time.time()))
        answer = timed(
            posts, lambda body=body: ask(f"{second.http}/v1/traces", body=body, headers=HEADERS)
        )
        assert answer.status == 200

    assert shown[0] < AGENTS
    assert max(scrapes) < MAX_WAIT_S
    assert max(posts) < MAX_WAIT_S
