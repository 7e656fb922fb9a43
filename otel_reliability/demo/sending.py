"""How the bookshop's telemetry reaches a service or a Collector: OTLP over HTTP, spans by the SDK's own exporter."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_reliability.demo.bookshop import Bookshop
from otel_reliability.demo.fleet import ROUNDS
from otel_reliability.model.span import Evaluation
from otel_reliability.sources.otlp_write import logs_json

_logger = logging.getLogger("otel_reliability.demo")

SCHEDULE_MS: Final = 250
"""Milliseconds in which spans gather to a request."""
QUEUE: Final = 32_768
"""Spans that may wait: the opening of the fleet comes at once."""
PATIENCE: Final = 5.0
LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})


def spans_to(endpoint: str) -> BatchSpanProcessor:
    """The SDK's processor and exporter, as an application sets them up."""
    session = requests.Session()
    session.trust_env = not is_local(endpoint)  # no proxy stands between a machine and itself
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", session=session)
    return BatchSpanProcessor(exporter, schedule_delay_millis=SCHEDULE_MS, max_queue_size=QUEUE)


def is_local(endpoint: str) -> bool:
    """Whether an endpoint is on this machine."""
    return urlsplit(endpoint).hostname in LOCAL


def opener(endpoint: str) -> urllib.request.OpenerDirector:
    """Asks an endpoint over HTTP."""
    return urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if is_local(endpoint) else []))


class Judgements:
    """An evaluator that tells its judgements as the log events of the GenAI conventions."""

    def __init__(self, endpoint: str) -> None:
        self._url, self._opener = f"{endpoint.rstrip('/')}/v1/logs", opener(endpoint)

    def judge(self, judgements: Sequence[Evaluation]) -> None:
        """Send these judgements. One that cannot be sent is lost, as an evaluator's is that nobody listens to."""
        if not judgements:
            return
        body = json.dumps(logs_json(judgements)).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})  # noqa: S310 (the user's URL)
        try:
            self._opener.open(request, timeout=PATIENCE).close()
        except OSError as error:
            _logger.warning("%d judgements could not be sent: %s", len(judgements), error)


@contextmanager
def sending(endpoint: str, seed: int = 7) -> Generator[Bookshop]:
    """A bookshop that sends to this endpoint, like `http://127.0.0.1:4318`. At the end everything has been sent."""
    shop = Bookshop(seed, [spans_to(endpoint)], [Judgements(endpoint)])
    try:
        yield shop
    finally:
        shop.close()


def send_opening(endpoint: str, seed: int = 7, rounds: int = ROUNDS) -> int:
    """Send the first rounds of the fleet at once, without spans that come late. Gives how many there were."""
    with sending(endpoint, seed) as shop:
        for _ in range(rounds):
            shop.round()
        return shop.rounds
