"""Two Prometheus servers that know the demo's fleet: one scraped it live, one holds what scrapes of two days would have given."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

from otel_reliability.model.span import Evaluation, Resource
from otel_reliability.sources.otlp_write import logs_json
from otel_reliability.testing import EPOCH_NS, FakeClock, traces_protobuf
from tests.dashboards.bookshop import Shop, play, stamped, written
from tests.demo.fleet import RESOURCE
from tests.real.prometheus.handle import Prometheus, Prometheuses, Promtool
from tests.service.running import JSON, Running, run_of, serving
from tests.telemetry.receivers import over_http

JOB: Final = "otel-reliability"
ROUNDS: Final = 30
HOUR: Final = 3600.0
SETTINGS: Final = {"sessions": {"idle": "5m"}, "hash_key": "00" * 16}


@contextmanager
def live(prometheus: Prometheuses, folder: Path) -> Generator[Prometheus]:
    """A service that the fleet sends to, with state, and a second one; and everything that goes wrong.

    Its clock is wound, Prometheus' runs: what takes the fleet a quarter of an hour is scraped within seconds.
    """
    with ExitStack() as stack:
        refusing = stack.enter_context(over_http())
        refusing.answers.extend([404] * 10_000)
        protocol = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        stack.enter_context(patch.dict(os.environ, {"OTEL_METRIC_EXPORT_INTERVAL": "200"}))
        clock = clock_at(time.time_ns() / 1e9)
        main = stack.enter_context(
            serving(
                SETTINGS, clock=clock, state=str(folder / "state"), push=refusing.url, instance="main", env=protocol
            )
        )
        edge = stack.enter_context(serving(SETTINGS, clock=FakeClock(clock()), instance="edge"))
        targets = [str(running.service.addresses["metrics"]) for running in (main, edge)]
        server = prometheus({JOB: {"static_configs": [{"targets": targets}]}})
        scrapes = Scrapes(server, len(targets))
        scrapes.wait()
        shop = Shop(main)
        for number in range(ROUNDS):
            shop.round()
            if number % 5 == 0:
                scrapes.wait()
        go_wrong(main)
        edge.post("traces", traces_protobuf([one for trace in range(1, 5) for one in run_of(trace)]))
        for _ in range(4):
            scrapes.wait()
            main.clock.advance(200)
            main.writer_came_round()
            edge.finalize()
            go_wrong(main)
            come_late(main)
        scrapes.wait()
        yield server


class Scrapes:
    """Lets Prometheus look before anything else happens."""

    def __init__(self, server: Prometheus, targets: int) -> None:
        self._server, self._targets = server, targets

    def wait(self) -> None:
        """Until every target was scraped after this moment, and twice: a rise is one that was seen from below."""
        began = time.time()
        seen = f"count(timestamp(otel_reliability_ready) > {began + 0.3:.3f}) or vector(0)"
        self._server.ask.wait(seen, lambda samples: samples[0].value >= self._targets)


def go_wrong(running: Running) -> None:
    """What a fleet does not do by itself: broken spans and requests, a judgement on nothing, a run from long ago."""
    (root, *_) = run_of(9_000)
    running.post("traces", traces_protobuf([root._replace(trace_id=bytes(16))]))
    running.post("traces", b"\xff\xff no protobuf")
    nobody = Evaluation("confidence", 0.5, None, running.clock.wall(), bytes([171]) * 16, bytes([205]) * 8)
    running.post("logs", json.dumps(logs_json([nobody])).encode(), JSON)
    long_ago = running.clock.wall() - 7 * 24 * 3_600 * 10**9
    (late, *_) = run_of(round(running.clock() * 1e3), agent="triage")
    late = late._replace(start_ns=long_ago, end_ns=long_ago + 10**9, resource=Resource.of(RESOURCE))
    running.post("traces", traces_protobuf([late]))


def come_late(running: Running) -> None:
    """A run is told, and then a call of it comes. Whether judgements of the fleet find their runs closed is up to the writer."""
    now = running.clock.wall()
    root, *calls = run_of(round(running.clock() * 1e3) + 1, agent="triage")
    later = now - root.end_ns
    root, *calls = [
        span._replace(start_ns=span.start_ns + later, end_ns=span.end_ns + later, resource=Resource.of(RESOURCE))
        for span in (root, *calls)
    ]
    running.post("traces", traces_protobuf([root, *calls[1:]]))
    running.clock.advance(5)
    running.writer_came_round()
    running.post("traces", traces_protobuf(calls[:1]))


@contextmanager
def past(prometheus: Prometheuses, promtool: Promtool, folder: Path) -> Generator[tuple[Prometheus, float]]:
    """An hour of yesterday, the same hour of today and then a new version; and the time that Prometheus is to be asked for.

    What the service answers to a scrape each minute of its wound clock, with that time, becomes Prometheus' own blocks.
    """
    end = time.time_ns() / 1e9 - 60
    scrapes: list[list[str]] = []
    clock = clock_at(end - 25 * HOUR)
    with serving({**SETTINGS, "agent_key": ["service.version"]}, clock=clock) as running:

        def seen() -> None:
            scrapes.append(list(stamped(running, {"job": JOB, "instance": "reliability:9464"})))

        seen()
        play(running, 60, 60.0, seen, version="1")
        clock.advance(end - clock.wall() / 1e9 - 100 * 60)
        play(running, 60, 60.0, seen, seed=8, version="1")
        play(running, 39, 60.0, seen, seed=9, version="2")
        at = clock.wall() / 1e9
    yield from_scrapes(prometheus, promtool, folder, scrapes), at


def from_scrapes(
    prometheus: Prometheuses, promtool: Promtool, folder: Path, scrapes: Sequence[Sequence[str]]
) -> Prometheus:
    """A Prometheus that holds these, and scrapes nothing."""
    store = folder / "blocks"
    (store / "store").mkdir(parents=True)
    text = written(folder / "scrapes.txt", scrapes)
    done = promtool(
        "tsdb", "create-blocks-from", "openmetrics", "--quiet", "--max-block-duration=24h", text, store / "store"
    )
    assert done.returncode == 0, done.stderr
    server = Prometheus(prometheus.program, store, {"global": {}}, ())
    prometheus.running.callback(server.stop)
    server.start()
    return server


def clock_at(seconds: float) -> FakeClock:
    """A clock that shows that Unix time."""
    return FakeClock(seconds - EPOCH_NS / 1e9)
