"""The service: all parts joined, the order in which they start and end, and the process that runs
it until a signal.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from otel_reliability import dashboards
from otel_reliability.engine import Engine
from otel_reliability.reference import pinned_by
from otel_reliability.report.proposal import UnknownSpans
from otel_reliability.service.addresses import HostPort, parse_address
from otel_reliability.service.agent_removal import AgentRemoval
from otel_reliability.service.api import Agents
from otel_reliability.service.arrivals import Arrived, lines_of
from otel_reliability.service.auth import AccessTokens
from otel_reliability.service.checks import check, http_context
from otel_reliability.service.connections import raise_file_limit
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.grpc import OtlpGrpc
from otel_reliability.service.health import RECOVERING, Readiness, ResidentMemory
from otel_reliability.service.heap import collect_seldom, use_one_arena
from otel_reliability.service.hosts import hosts_of
from otel_reliability.service.http import TRANSPORT as HTTP
from otel_reliability.service.http import OtlpHttp
from otel_reliability.service.intake import RequestBudget, RequestIntake
from otel_reliability.service.logs import log_loop_error
from otel_reliability.service.native_decoder import MODULE, load
from otel_reliability.service.outcomes import OutcomeReports
from otel_reliability.service.persistence import Persistence, Persistent, Volatile
from otel_reliability.service.proxy import BasePath
from otel_reliability.service.settings import Config
from otel_reliability.service.site import Site
from otel_reliability.service.state import State
from otel_reliability.service.state_changes import StateChanges
from otel_reliability.service.web import PROBES, Endpoint, Web, api, metrics, probes
from otel_reliability.service.writer import CHECK_INTERVAL_S, Writer, WriterProgress
from otel_reliability.state.clock import Clock
from otel_reliability.state.directory import StateDirectory
from otel_reliability.telemetry import names
from otel_reliability.telemetry import self as self_telemetry
from otel_reliability.telemetry.exposition import Exposition, Registry
from otel_reliability.telemetry.instruments import Point, counted
from otel_reliability.telemetry.otlp import (
    OtlpPush,
    is_push_configured,
    protocol_of,
    resource_attributes,
)
from otel_reliability.telemetry.prometheus import Prometheus
from otel_reliability.telemetry.series_recording import SeriesRecording
from otel_reliability.ui.known_groups import KnownGroups
from otel_reliability.ui.live import Histories
from otel_reliability.ui.rendering import Endpoints
from otel_reliability.ui.runs import RunStore

_logger = logging.getLogger("otel_reliability.service")

NAME: Final = "otel-reliability"
"""Our own `service.name`."""
PATIENCE: Final = 2.0
"""Seconds that requests under way, and each sender, have when the service stops."""
POLL: Final = 0.02
"""Seconds between two checks whether state is loaded."""
READERS: Final = 2
"""Threads that decompress and decode large bodies; under one interpreter lock more would not be
faster.
"""


class Service:
    """One process of the service. `start` and `stop` are called once each, on one event loop.

    `persistence_of` makes what keeps its state; `env` holds OpenTelemetry's own variables; `clock`
    counts seconds, and `wall` gives the Unix time in nanoseconds.
    """

    def __init__(
        self,
        config: Config,
        *,
        persistence_of: Callable[[State], Persistence] | None = None,
        env: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        settings = config.service
        check(settings)
        self.settings = settings
        self.resource = _resource(settings.instance)
        """Resource of the metrics. It stays the same over restarts: a new instance is a new series.
        """
        self.addresses: dict[str, HostPort] = {}
        """Addresses of the open endpoints."""
        directory = None if settings.state is None else StateDirectory(Path(settings.state))
        engine_settings = config
        if directory is not None and engine_settings.hash_key is None:
            engine_settings = msgspec.structs.replace(engine_settings, hash_key=directory.key())
        time_of_state = Clock(clock, wall)
        wall = self._wall = time_of_state.wall
        self.engine = Engine(
            engine_settings,
            clock=time_of_state,
            wall=wall,
            places_return=True,
            pinned=pinned_by(config),
        )
        self.registry = Registry(wall)
        recording = SeriesRecording(self.engine, self.registry)
        self._histories = None if parse_address(settings.ui) is None else Histories(self.engine)
        self._groups = KnownGroups(self.engine)
        self.state = State(self.engine, recording, self._histories, self._groups)
        self.state.removers.append(self._groups.remove)
        if self._histories is not None:
            self.state.removers.append(self._histories.remove)
        self.readiness = Readiness()
        if directory is not None:
            persistence_of = partial(
                Persistent,
                clock=time_of_state,
                directory=directory,
                sync=settings.state_sync,
                limit=settings.state_limit,
            )
        self.persistence = (persistence_of or Volatile)(self.state)
        self.writer = Writer(self.state, self.persistence, self.readiness)
        self.progress = WriterProgress(self.writer, self.state)
        self.intake = RequestIntake(
            Decoder(self.engine.reader),
            self.writer,
            self.readiness,
            RequestBudget(settings.queue or self.engine.settings.limits.memory // 4),
            limit=settings.max_request,
            patience=settings.commit_timeout,
        )
        self._memory = ResidentMemory(settings.memory, self.readiness)
        self.state.watchers.append(self._memory)
        self.push: OtlpPush | None = None
        """The export of metrics, once state is loaded."""
        self._env = env
        self.exposition = Exposition(lambda: [(self.engine, self.registry)], self._self_telemetry)
        self._tokens = tokens = AccessTokens(settings.token, settings.token_file)
        self._working: asyncio.Task[None] | None = None
        self._threads, self._painter = (
            ThreadPoolExecutor(READERS, "reader"),
            ThreadPoolExecutor(1, "ui"),
        )
        self._base = BasePath(config.ui)
        self._runs = RunStore(self.engine, self.persistence.runs, self._groups)
        self._site = None if self._histories is None else self._site_of(self._histories)
        self._web = Web(
            tokens,
            hosts_of(config),
            http_context(settings.tls),
            partial(self.intake.count, None, HTTP),
            self._base.below(PROBES),
        )
        self._grpc = OtlpGrpc(
            self.intake,
            self.readiness,
            tokens,
            self._threads,
            max_connection_age=settings.max_connection_age,
        )

    def healthy(self) -> bool:
        """Return whether the process works: its writer makes progress, or still loads state."""
        recovering = RECOVERING in self.readiness.reasons
        return self.writer.alive and (recovering or not self.progress.stuck)

    async def start(self) -> None:
        """Open the endpoints, and accept requests once state is loaded. Raise `ConfigurationError`
        if one cannot be opened.
        """
        self.writer.start()
        try:
            self.addresses = await self._web.open(self._endpoints())
            place = parse_address(self.settings.grpc)
            if place is not None:
                self.addresses["grpc"] = await self._grpc.open(place, self.settings.tls)
        except BaseException:
            await self.stop()
            raise
        self._working = asyncio.create_task(self._work())
        for endpoint, place in self.addresses.items():
            _logger.info("%s listens on %s", endpoint, place)

    async def stop(self) -> None:
        """Refuse requests, drain the queue, close open runs, export metrics once more, and end."""
        self.readiness.hold("stopping", "the service is stopping")
        if self._working is not None:
            self._working.cancel()
        loop = asyncio.get_running_loop()
        await self._grpc.close(PATIENCE)
        done = await loop.run_in_executor(None, self.writer.stop, self.settings.drain)
        if not done:
            _logger.error("The queue could not be drained within %g s.", self.settings.drain)
        if self.push is not None:
            await loop.run_in_executor(None, self.push.stop, PATIENCE)
        await self._web.close()
        self._threads.shutdown(wait=True)
        self._painter.shutdown(wait=True)

    async def _work(self) -> None:
        """Push metrics once state is loaded, and check that the writer makes progress."""
        while RECOVERING in self.readiness.reasons:  # noqa: ASYNC110 (a thread sets it)
            await asyncio.sleep(POLL)
        endpoint = self.settings.push
        env = self._env
        if is_push_configured(endpoint, env):
            self.push = OtlpPush(
                self.exposition, self.resource, endpoint=endpoint, protocol=protocol_of(env)
            )
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.progress.check()

    def _self_telemetry(self) -> Iterator[Point]:
        """Yield the current values of all instruments of the service itself."""
        engine = self.engine
        ledger = self.state.recording.ledger
        intake = self.intake
        yield from engine.read(lambda _: list(self_telemetry.points(engine, ledger))) or ()
        yield from counted(names.REQUESTS, intake.requests)
        yield names.REQUESTS_WAITING.name, intake.budget.held, {}
        yield names.READY.name, 0 if self.readiness.reasons else 1, {}
        yield from counted(names.LOG_RECORDS, self.state.logs)
        yield from self_telemetry.of_limits(
            (*intake.limits(), *self._memory.limits(), *self.persistence.limits())
        )
        if self.push is not None:
            exporter = self.push.exporter
            sink = "metrics"
            outcomes = dict(exporter.outcomes)
            yield from counted(
                names.EXPORTS, {(sink, outcome): number for outcome, number in outcomes.items()}
            )
            yield from counted(names.EXPORT_DURATION, {sink: exporter.duration})

    def _endpoints(self) -> Iterable[Endpoint]:
        checks = probes(self.readiness, self.healthy)
        agents = Agents(
            self.engine, self._runs, self._groups, self.persistence.changed, self._histories
        )
        answers = api(agents, self._threads, self.readiness)
        changes = StateChanges(self.writer.commit, self.readiness, self.settings.commit_timeout)
        changing = [
            *OutcomeReports(changes, self.engine.reader.without_key, self._wall).routes(),
            *AgentRemoval(agents, self._threads, changes).routes(),
        ]
        scraped = dashboards.scraped(self.settings.series)
        prometheus = Prometheus(self.exposition, self.resource, scraped)
        scrapes = metrics(prometheus, self._threads, self.readiness)
        return (
            ("http", self.settings.http, OtlpHttp(self.intake, self._threads).routes()),
            ("metrics", self.settings.metrics, scrapes),
            (
                "ui",
                self.settings.ui,
                self._base.routes(
                    [
                        *checks,
                        *answers,
                        *changing,
                        *(() if self._site is None else self._site.routes()),
                    ]
                ),
            ),
        )

    def _site_of(self, histories: Histories) -> Site:
        unknown = UnknownSpans()
        self.engine.reader.on_unknown = unknown.wants
        return Site(
            self.engine,
            histories,
            self._groups,
            self._runs,
            unknown,
            self._painter,
            self.readiness,
            self._receiver_endpoints,
            self.persistence.changed,
            self._base,
            partial(self._arrived, unknown),
        )

    def _arrived(self, unknown: UnknownSpans) -> list[str]:
        """Return what has arrived, and why none of it became a run."""
        engine = self.engine
        found = Arrived(
            requests=dict(self.intake.requests),
            spans=engine.read(lambda _: engine.accounts) or {},
            logs=dict(self.state.logs),
            open_runs=engine.open_runs,
            scopes=unknown.scopes(),
            refusal=self.intake.refusal,
        )
        return list(lines_of(found))

    def _receiver_endpoints(self, host: str) -> Endpoints:
        """Return the addresses of the OTLP receivers for a client that reaches this machine by that
        name.
        """
        scheme = "http" if self.settings.tls.certificate is None else "https"
        places = ((name, self.addresses.get(name)) for name in ("http", "grpc"))
        found = {
            name: f"{scheme}://{place.reached_by(host)}"
            for name, place in places
            if place is not None
        }
        return Endpoints(**found, token=self._tokens.asked)


def _resource(instance: str | None) -> dict[str, str]:
    found = {
        "service.name": NAME,
        "service.instance.id": socket.gethostname(),
        **resource_attributes(),
    }
    return found if instance is None else {**found, "service.instance.id": instance}


# --- The process ----------------------------------------------------------------------------------


SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def serve(config: Config, env: Mapping[str, str]) -> None:
    """Serve until SIGTERM or SIGINT. Raises `ConfigurationError` where it cannot begin."""
    use_one_arena()
    collect_seldom()
    raise_file_limit()
    asyncio.run(_serve(Service(config, env=env)))


async def _serve(service: Service) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    for number in SIGNALS:
        loop.add_signal_handler(number, asked.set)
    await service.start()
    if load(MODULE) is not None:
        _logger.info("Requests are decoded by the native extension (%s).", MODULE)
    scheme = "https" if service.settings.tls.certificate is not None else "http"
    texts = {"ui": "UI: {}/", "metrics": "Metrics: {}/metrics"}
    where = [
        texts[name].format(f"{scheme}://{place}")
        for name, place in service.addresses.items()
        if name in texts
    ]
    _logger.info("Started. %s", "; ".join(where) or "Neither the UI nor /metrics is served.")
    await asked.wait()
    _logger.info("Shutting down: draining the queue and exporting metrics.")
    await service.stop()
    _logger.info("Stopped.")
