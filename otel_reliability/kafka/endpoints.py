"""`/metrics` and the probes of a worker, on a thread of their own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from otel_reliability import dashboards
from otel_reliability.service.addresses import HostPort
from otel_reliability.service.auth import AccessTokens
from otel_reliability.service.checks import http_context
from otel_reliability.service.health import Readiness
from otel_reliability.service.hosts import Hosts
from otel_reliability.service.logs import log_loop_error
from otel_reliability.service.settings import ServiceSettings
from otel_reliability.service.web import Web, metrics, probes
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.prometheus import Prometheus

T = TypeVar("T")


def _count_nothing(reason: str, peer: str | None) -> None:
    """Requests here are not counted as work."""


class WorkerEndpoints:
    """`/metrics` and health checks. Opened once, closed once."""

    def __init__(
        self,
        settings: ServiceSettings,
        exposition: Exposition,
        readiness: Readiness,
        healthy: Callable[[], bool],
    ) -> None:
        self.addresses: Mapping[str, HostPort] = {}
        """Addresses of the open endpoints."""
        self._threads = ThreadPoolExecutor(1, "reader")
        tokens = AccessTokens(settings.token, settings.token_file)
        self._web = Web(tokens, Hosts(()), http_context(settings.tls), _count_nothing)
        resource = {
            "service.name": "otel-reliability",
            "service.instance.id": settings.instance or socket.gethostname(),
        }
        prometheus = Prometheus(exposition, resource, dashboards.scraped(settings.series))
        self._endpoints = (
            ("metrics", settings.metrics, metrics(prometheus, self._threads, readiness)),
            ("ui", settings.ui, probes(readiness, healthy)),
        )
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(log_loop_error)
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="endpoints", daemon=True
        )

    def open(self) -> None:
        """Listen. Raise `ConfigurationError` if an address cannot be bound."""
        self._thread.start()
        self.addresses = self._await(self._web.open(self._endpoints))

    def close(self) -> None:
        self._await(self._web.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        self._loop.close()
        self._threads.shutdown(wait=True)

    def _await(self, coming: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coming, self._loop).result(30.0)
