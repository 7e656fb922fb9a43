"""Run the service until somebody asks for its end."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from otel_reliability.service.config_file import Config
from otel_reliability.service.memory import look_seldom
from otel_reliability.service.persistence import Volatile
from otel_reliability.service.service import Service
from otel_reliability.service.state import State
from otel_reliability.sources.native_decoder import MODULE
from otel_reliability.sources.native_extension import load

_logger = logging.getLogger("otel_reliability.service")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def serve(config: Config, env: Mapping[str, str], persistence_of: Callable[[State], Volatile] | None = None) -> None:
    """Serve until SIGTERM or SIGINT. Raises `ConfigurationError` where it cannot begin."""
    look_seldom()
    asyncio.run(_serve(Service(config, persistence_of=persistence_of, env=env)))


async def _serve(service: Service) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, asked.set)
    await service.start()
    if load(MODULE) is not None:
        _logger.info("Requests are decoded by the native extension (%s).", MODULE)
    _logger.info("Ready. %s", "; ".join(_where(service)) or "Neither pages nor /metrics are served.")
    await asked.wait()
    _logger.info("Stopping: what came is worked off, and told once more.")
    await service.stop()
    _logger.info("Stopped.")


def _where(service: Service) -> Iterator[str]:
    """Where to look."""
    scheme = "https" if service.settings.tls.certificate is not None else "http"
    for door, what in (("ui", "Pages: {}/"), ("metrics", "Numbers: {}/metrics")):
        if door in service.addresses:
            yield what.format(f"{scheme}://{service.addresses[door]}")
