"""Send all numbers every now and then, from a thread of its own; and once more at the end.

What could not be sent is not kept: the next sending has it all, since counters and histograms are totals. Only what ended in
between is remembered until it was told.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from typing import Final

from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.otlp import Answer, Sender
from otel_reliability.telemetry.otlp_packer import Request
from otel_reliability.telemetry.otlp_requests import Requests

_logger = logging.getLogger("otel_reliability.service")

PAUSE: Final = 1.0
"""Seconds before a request is sent again, where its receiver does not say."""
TRIES: Final = 3
"""How often one request is sent within one sending."""

_SEND: Final = Guard("sending metrics")


class Push:
    """Sends what `requests` writes through `sender`, every `interval` seconds.

    `outcomes` counts requests by what became of them; `duration` is how long the last sending took.
    """

    def __init__(self, requests: Requests, sender: Sender, interval: float) -> None:
        self.outcomes: Counter[str] = Counter()
        self.duration = 0.0
        self._requests, self._sender, self._interval = requests, sender, interval
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="push", daemon=True)
        self._failing = False

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self, patience: float) -> None:
        """Send once more, within so many seconds, and end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(patience)
        self.send(last=time.monotonic() + patience)
        self._sender.close()

    def send(self, last: float | None = None) -> bool:
        """One sending. `last` is when the end has come. False: not all of it was taken."""
        began = time.monotonic()
        taken = False
        with _SEND:
            taken = self._send_all(last)
        self.duration = time.monotonic() - began
        self._tell(taken=taken)
        return taken

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            self.send()

    def _send_all(self, last: float | None) -> bool:
        """A request that is refused for good does not keep the others back; one that is to be sent later does."""
        taken = True
        for request in self._requests.write():
            answer = self._tried(request, last)
            if answer.taken:
                self._requests.taken(request)
            else:
                taken = False
                if answer.retry_after is not None:
                    break
        if taken:
            self._requests.done()
        return taken

    def _tried(self, request: Request, last: float | None) -> Answer:
        """Send a request until it is taken, or there is no use in sending it again, or no time."""
        for attempt in range(1, TRIES + 1):
            timeout = None if last is None else max(0.1, last - time.monotonic())
            answer = self._sender.send(request.body, timeout)
            self.outcomes[answer.outcome] += 1
            if answer.taken or answer.retry_after is None or last is not None or attempt == TRIES:
                return answer
            if self._stopping.wait(min(max(answer.retry_after, PAUSE * attempt), self._interval)):
                return answer
        raise AssertionError(TRIES)

    def _tell(self, *, taken: bool) -> None:
        """Say so when sending begins to fail, and when it works again."""
        if taken is self._failing:
            self._failing = not taken
            if taken:
                _logger.info("Metrics are taken again.")
            else:
                _logger.warning(
                    "Metrics are not taken: %s so far. They are sent again in %g s.",
                    dict(self.outcomes),
                    self._interval,
                )
