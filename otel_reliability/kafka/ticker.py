"""Ticks: empty messages to every partition that a worker reads, so that its time goes on when nothing else comes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from otel_reliability.kafka.stage import TICK

_logger = logging.getLogger("otel_reliability.kafka")


class Ticker:
    """Sends ticks from a thread of its own. A tick that is lost is made up for by the next."""

    def __init__(self, producer: Any, interval: float) -> None:
        self.partitions: Sequence[tuple[str, int]] = ()
        """Where to: topics and partitions. Replaced as a whole, by any thread."""
        self._producer, self._interval = producer, interval
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        """Start sending."""
        self._thread.start()

    def stop(self) -> None:
        """End sending."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            for topic, number in self.partitions:
                try:
                    self._producer.produce(topic, value=TICK, partition=number, buffer_error_max_tries=1)
                except Exception as error:  # noqa: BLE001 (brokers that are away are reported elsewhere)
                    _logger.debug("A tick was not sent: %s", error)
            self._producer.poll(0)
