"""The service as `otel-reliability serve` runs it, on free ports of this machine, in a thread, for
as long as it is needed.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from otel_reliability.service.config_file import load_config
from otel_reliability.service.service import Service
from otel_reliability.service.settings import Config

FREE: Final = "127.0.0.1:0"
START: Final = 30.0
"""Seconds that the start may take, and the end."""
IN_A_HURRY: Final[Mapping[str, Any]] = {
    "assembly": {"reopen": 8.0},
    "sessions": {"idle": 10.0},
    "windows": [{"name": "recent", "last": 24}],
}
"""Waits that a demo does without: 60 s for stragglers of a run, and half an hour for the end of a
conversation. Its windows hold the runs of one recording, which then repeats: so no number drifts
only because a window fills.
"""


def configured(state: str) -> Config:
    """Return the default settings, but for the addresses, the state and what a demo cannot wait
    for.
    """
    doors = dict.fromkeys(("grpc", "http", "metrics", "ui"), FREE)
    return load_config(flags={**IN_A_HURRY, "service": {**doors, "state": state}})


@contextmanager
def hosting() -> Generator[Service]:
    """A service that is ready to take OTLP. Nothing of it is left behind."""
    with tempfile.TemporaryDirectory(prefix="otel-reliability-demo-") as state:
        service = Service(configured(state), env={})
        with living(service):
            deadline = time.monotonic() + START
            while service.readiness.reasons and time.monotonic() < deadline:
                time.sleep(0.02)
            yield service


@contextmanager
def living(service: Service) -> Generator[None]:
    """A service on an event loop and a thread of its own, until the end of the block."""
    begun = Future[asyncio.AbstractEventLoop]()
    ending = asyncio.Event()

    async def live() -> None:
        try:
            await service.start()
        except BaseException as error:
            begun.set_exception(error)
            raise
        begun.set_result(asyncio.get_running_loop())
        await ending.wait()
        await service.stop()

    with ThreadPoolExecutor(1, "service") as pool:
        ended = pool.submit(asyncio.run, live())
        loop = begun.result(START)
        try:
            yield
        finally:
            loop.call_soon_threadsafe(ending.set)
            ended.result(START)
