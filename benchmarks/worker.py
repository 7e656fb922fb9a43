"""Jobs in processes of their own, so that those with the native extension and those without are
measured in turns.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks import without_native
from benchmarks.otlp import SPANS
from benchmarks.shapes import traffic

REQUESTS: Final = 30
"""Requests per round."""
WARM: Final = 90
"""Requests before the first round: they fill the windows of ten agents."""


class Cost(NamedTuple):
    """CPU seconds per span of the whole job, and of a bare `ParseFromString` of
    the same requests.
    """

    job: float
    parse: float


@contextmanager
def worker(
    name: str, *, native: bool, requests: int = REQUESTS, warm: int = WARM
) -> Generator[Callable[[], Cost]]:
    """Start a process with one job and this traffic, and end it. Each call measures one round of
    fresh requests.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_work, args=(theirs, name, native, requests, warm), daemon=True
    )
    process.start()
    theirs.close()

    def measure() -> Cost:
        ours.send(True)
        return Cost(*ours.recv())

    try:
        yield measure
    finally:
        ours.close()
        process.join()


def _work(pipe: Connection, name: str, native: bool, requests: int, warm: int) -> None:
    if not native:
        without_native.block()
    from benchmarks.job import Job  # noqa: PLC0415 (after the extension is blocked)

    bodies = traffic(name)
    job = Job()
    spans = SPANS * requests
    for body in islice(bodies, warm):
        job.receive(body)
    with suppress(EOFError):  # the benchmark is done
        while pipe.recv():
            fresh = list(islice(bodies, requests))
            pipe.send(
                (
                    _timed(job.receive, fresh) / spans,
                    _timed(ExportTraceServiceRequest.FromString, fresh) / spans,
                )
            )


def _timed(work: Callable[[bytes], object], bodies: Sequence[bytes]) -> float:
    gc.collect()
    began = time.process_time()
    for body in bodies:
        work(body)
    return time.process_time() - began
