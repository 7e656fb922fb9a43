from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, cast

import grpc
import pytest

from otel_reliability.service.health import resident
from tests.real.waiting import until
from tests.service.running import EXPORT_TRACES, Running, body_of, runs_of, serving

MEGABYTE = 1024 * 1024
CLIENTS = 4
RUNS = 20
"""Runs a request."""


class Client:
    """Sends requests one after the other, each until it is taken, over HTTP or gRPC in turn."""

    def __init__(self, running: Running, first: int) -> None:
        self._running, self._numbers = running, count(first, CLIENTS)
        self.acknowledged = 0
        self.refusals: Counter[str] = Counter()
        self.without_hint = 0

    def work(self, ending: threading.Event) -> None:
        """Until somebody says that it is enough; what was begun is finished."""
        with grpc.insecure_channel(self._running.target) as channel:
            export: Any = cast("Any", channel).unary_unary(EXPORT_TRACES)
            while not ending.is_set():
                number = next(self._numbers)
                body = body_of(runs_of(RUNS, agent=f"agent-{number % 7}", first=1 + number * RUNS))
                while not (
                    self._by_http(body) if number // CLIENTS % 2 else self._by_grpc(export, body)
                ):
                    time.sleep(0.02)
                self.acknowledged += RUNS

    def _by_http(self, body: bytes) -> bool:
        answer = self._running.post("traces", body)
        if answer.status == 200:
            return True
        self._refused(str(answer.status), hinted=bool(answer.headers["Retry-After"]))
        return False

    def _by_grpc(self, export: Any, body: bytes) -> bool:
        try:
            export(body, timeout=60)
        except grpc.RpcError as error:
            refusal = cast("Any", error)
            hints = {key for key, _ in refusal.trailing_metadata()}
            self._refused(
                refusal.code().name,
                hinted={"google.rpc.retryinfo-bin", "grpc-status-details-bin"} <= hints,
            )
            return False
        return True

    def _refused(self, how: str, *, hinted: bool) -> None:
        self.refusals[how] += 1
        self.without_hint += not hinted


@pytest.mark.parametrize(
    "seconds", [2.0, pytest.param(300.0, marks=pytest.mark.soak)], ids=["short", "five minutes"]
)
def test_more_than_it_can_take(seconds: float) -> None:
    size = len(body_of(runs_of(RUNS)))
    with serving(queue=2 * size, max_request=2 * size) as running:
        clients = [Client(running, first) for first in range(CLIENTS)]
        ending = threading.Event()
        with ThreadPoolExecutor(CLIENTS) as pool:
            working = [pool.submit(client.work, ending) for client in clients]
            time.sleep(min(seconds, 1.0))
            before = resident()
            for _ in range(int(seconds / 0.2)):
                time.sleep(0.2)
                running.clock.advance(1.0)
            grown = resident() - before
            ending.set()
            for one in working:
                one.result(60)
        ended = time.monotonic()
        until(lambda: running.service.intake.budget.used == 0, "the queue to be empty")
        current = time.monotonic() - ended
        running.finalize()
        acknowledged = sum(client.acknowledged for client in clients)
        refusals = sum((client.refusals for client in clients), Counter[str]())

        assert set(refusals) <= {"503", "UNAVAILABLE"}
        assert sum(refusals.values()) > 5
        assert sum(client.without_hint for client in clients) == 0
        assert running.sum("agent_reliability_runs_total") == acknowledged > 100
        full = running.sum("otel_reliability_limit_hits_total", limit="queue_bytes")
        outcomes = running.service.intake.requests.items()
        late = sum(number for (*_, outcome), number in outcomes if outcome == "commit_timeout")
        assert full + late == sum(refusals.values())
        assert grown < 200 * MEGABYTE
        assert current < 5
