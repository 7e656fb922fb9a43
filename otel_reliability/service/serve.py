"""Run the service until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Final

from otel_reliability.service.config_file import Config
from otel_reliability.service.health import collect_seldom
from otel_reliability.service.persistence import Volatile
from otel_reliability.service.service import Service
from otel_reliability.service.state import State
from otel_reliability.sources.native_decoder import MODULE, load

FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def log_to_stderr(level: str) -> None:
    """Log to stderr: events of the process, never content of spans."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    logger = logging.getLogger("otel_reliability")
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False


_logger = logging.getLogger("otel_reliability.service")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def serve(config: Config, env: Mapping[str, str], persistence_of: Callable[[State], Volatile] | None = None) -> None:
    """Serve until SIGTERM or SIGINT. Raises `ConfigurationError` where it cannot begin."""
    collect_seldom()
    asyncio.run(_serve(Service(config, persistence_of=persistence_of, env=env)))


async def _serve(service: Service) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, asked.set)
    await service.start()
    if load(MODULE) is not None:
        _logger.info("Requests are decoded by the native extension (%s).", MODULE)
    scheme = "https" if service.settings.tls.certificate is not None else "http"
    texts = {"ui": "UI: {}/", "metrics": "Metrics: {}/metrics"}
    where = [texts[name].format(f"{scheme}://{place}") for name, place in service.addresses.items() if name in texts]
    _logger.info("Started. %s", "; ".join(where) or "Neither the UI nor /metrics is served.")
    await asked.wait()
    _logger.info("Shutting down: draining the queue and exporting metrics.")
    await service.stop()
    _logger.info("Stopped.")
