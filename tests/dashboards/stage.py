"""Two Prometheus servers that know the demo's fleet: one scraped it live, one holds what scrapes of
two days would have given.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

from msgspec.structs import replace

from otel_reliability.model.span import Evaluation, RawSpan, Resource
from otel_reliability.sources.otlp_write import logs_json
from otel_reliability.testing import EPOCH_NS, SECOND, FakeClock
from tests.demo.bookshop import ROUND, Bookshop
from tests.demo.fleet import RESOURCE, ROUNDS
from tests.otlp import traces_protobuf
from tests.real.prometheus.handle import Prometheus, Prometheuses, Promtool
from tests.service.running import JSON, Running, run_of, serving
from tests.telemetry.receivers import over_http

JOB: Final = "otel-reliability"
LIVE_ROUNDS: Final = 30
HOUR: Final = 3600.0
SETTINGS: Final = {
    "sessions": {"idle": "5m"},
    "hash_key": "00" * 16,
    "objectives": [{"success": 0.5}],  # what holds without one, so that no verdict depends on it
}


@contextmanager
def live(prometheus: Prometheuses, folder: Path) -> Generator[Prometheus]:
    """A service that the fleet sends to, with state, and a second one; and everything that goes
    wrong.

    Its clock is wound, Prometheus' runs: what takes the fleet a quarter of an hour is scraped
    within seconds.
    """
    with ExitStack() as stack:
        refusing = stack.enter_context(over_http())
        refusing.answers.extend([404] * 10_000)
        protocol = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        stack.enter_context(patch.dict(os.environ, {"OTEL_METRIC_EXPORT_INTERVAL": "200"}))
        clock = clock_at(time.time_ns() / 1e9)
        main = stack.enter_context(
            serving(
                SETTINGS,
                clock=clock,
                state=str(folder / "state"),
                push=refusing.url,
                instance="main",
                env=protocol,
            )
        )
        edge = stack.enter_context(serving(SETTINGS, clock=FakeClock(clock()), instance="edge"))
        targets = [str(running.service.addresses["metrics"]) for running in (main, edge)]
        server = prometheus({JOB: {"static_configs": [{"targets": targets}]}})
        scrapes = Scrapes(server, len(targets))
        scrapes.wait()
        shop = Shop(main)
        for number in range(LIVE_ROUNDS):
            shop.round()
            if number % 5 == 0:
                scrapes.wait()
        go_wrong(main)
        edge.post(
            "traces", traces_protobuf([one for trace in range(1, 5) for one in run_of(trace)])
        )
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
        self._server = server
        self._targets = targets

    def wait(self) -> None:
        """Until every target was scraped after this moment, and twice: a rise is one that was seen
        from below.
        """
        began = time.time()
        seen = f"count(timestamp(otel_reliability_ready) > {began + 0.3:.3f}) or vector(0)"
        self._server.ask.wait(seen, lambda samples: samples[0].value >= self._targets)


def go_wrong(running: Running) -> None:
    """What a fleet does not do by itself: broken spans and requests, a judgement on nothing, a run
    from long ago.
    """
    (root, *_) = run_of(9_000)
    running.post("traces", traces_protobuf([replace(root, trace_id=bytes(16))]))
    running.post("traces", b"\xff\xff no protobuf")
    nobody = Evaluation(
        "confidence", 0.5, None, running.clock.wall(), bytes([171]) * 16, bytes([205]) * 8
    )
    running.post("logs", json.dumps(logs_json([nobody])).encode(), JSON)
    long_ago = running.clock.wall() - 7 * 24 * 3_600 * 10**9
    (late, *_) = run_of(round(running.clock() * 1e3), agent="triage")
    late = replace(late, start_ns=long_ago, end_ns=long_ago + 10**9, resource=Resource.of(RESOURCE))
    running.post("traces", traces_protobuf([late]))


def come_late(running: Running) -> None:
    """A run is told, and then a call of it comes. Whether judgements of the fleet find their runs
    closed is up to the writer.
    """
    now = running.clock.wall()
    root, *calls = run_of(round(running.clock() * 1e3) + 1, agent="triage")
    later = now - root.end_ns
    root, *calls = [
        replace(
            span,
            start_ns=span.start_ns + later,
            end_ns=span.end_ns + later,
            resource=Resource.of(RESOURCE),
        )
        for span in (root, *calls)
    ]
    running.post("traces", traces_protobuf([root, *calls[1:]]))
    running.clock.advance(5)
    running.writer_came_round()
    running.post("traces", traces_protobuf(calls[:1]))


@contextmanager
def past(
    prometheus: Prometheuses, promtool: Promtool, folder: Path
) -> Generator[tuple[Prometheus, float]]:
    """An hour of yesterday, the same hour of today and then a new version; and the time that
    Prometheus is to be asked for.

    What the service answers to a scrape each minute of its wound clock, with that time, becomes
    Prometheus' own blocks.
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
    store = folder / "blocks"
    (store / "store").mkdir(parents=True)
    text = written(folder / "scrapes.txt", scrapes)
    done = promtool(
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        "--quiet",
        "--max-block-duration=24h",
        text,
        store / "store",
    )
    assert done.returncode == 0, done.stderr
    server = Prometheus(prometheus.program, store, {"global": {}}, ())
    prometheus.running.callback(server.stop)
    server.start()
    return server


def clock_at(seconds: float) -> FakeClock:
    return FakeClock(seconds - EPOCH_NS / 1e9)


# --- The fleet ------------------------------------------------------------------------------------


OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"
_SAMPLE: Final = re.compile(r"^(\S+?(?:\{.*\})?) (\S+)(?: # .*)?$")


class Shop:
    """The fleet, in step with the clock of a service: each round happens when the clock says so."""

    def __init__(
        self,
        running: Running,
        *,
        seed: int = 7,
        version: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._running = running
        told = {"service.version": version, "deployment.environment.name": environment}
        self._resource = {name: value for name, value in told.items() if value is not None}
        begun_ns = running.clock.wall()
        self._shop = Bookshop(
            seed, wall=lambda: begun_ns + ROUNDS * ROUND * SECOND, clock=running.clock
        )
        self._begun_ns = begun_ns
        self.rounds = 0

    def round(self, seconds: float = ROUND) -> None:
        played_ns = self._begun_ns + min(self.rounds, ROUNDS) * ROUND * SECOND
        later_ns = self._running.clock.wall() - played_ns
        self._shop.round()
        self.rounds += 1
        self._running.clock.advance(seconds)
        self._send(later_ns)
        self._running.writer_came_round()

    def _send(self, later_ns: int) -> None:
        ended, judged = self._shop.ended()
        spans = [self._told(span, later_ns) for span in ended]
        judgements = [replace(one, time_ns=one.time_ns + later_ns) for one in judged]
        assert self._running.post("traces", traces_protobuf(spans)).status == 200
        if judgements:
            body = json.dumps(logs_json(judgements)).encode()
            assert self._running.post("logs", body, JSON).status == 200

    def _told(self, span: RawSpan, later_ns: int) -> RawSpan:
        moved = replace(span, start_ns=span.start_ns + later_ns, end_ns=span.end_ns + later_ns)
        if not self._resource:
            return moved
        return replace(moved, resource=Resource.of({**span.resource.attributes, **self._resource}))


def stamped(running: Running, others: Mapping[str, str]) -> Iterator[str]:
    """One scrape of the service, as it would stand in a store: at its clock's time, with the labels
    of the scraper.
    """
    at = f"{running.clock.wall() / 1e9:.3f}"
    extra = ",".join(f'{label}="{value}"' for label, value in others.items())
    for line in running.get("metrics", "/metrics", Accept=OPENMETRICS).text.splitlines():
        if line.startswith("# TYPE"):
            yield line
        elif not line.startswith("#"):
            found = _SAMPLE.match(line)
            assert found, line
            yield f"{_with(found[1], extra)} {found[2]} {at}"


def _with(series: str, extra: str) -> str:
    return f"{series[:-1]},{extra}}}" if series.endswith("}") else f"{series}{{{extra}}}"


def written(path: Path, scrapes: Sequence[Sequence[str]]) -> Path:
    """Many scrapes as a file for `promtool tsdb create-blocks-from openmetrics`: families in turn,
    each with all its samples.
    """
    families: dict[str, list[str]] = {}
    for scrape in scrapes:
        samples: list[str] = []
        for line in scrape:
            if line.startswith("#"):
                samples = families.setdefault(line, [])
            else:
                samples.append(line)
    lines = [line for head, samples in families.items() for line in (head, *samples)]
    path.write_text("\n".join([*lines, "# EOF\n"]), encoding="utf-8")
    return path


def play(
    running: Running,
    rounds: int,
    seconds: float,
    seen: Callable[[], None],
    *,
    seed: int = 7,
    version: str | None = None,
) -> None:
    shop = Shop(running, seed=seed, version=version)
    for _ in range(rounds):
        shop.round(seconds)
        seen()
