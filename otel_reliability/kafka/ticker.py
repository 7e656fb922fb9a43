"""Ticks: empty messages to every partition that a worker reads, so that its time goes on when nothing else comes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any, Final

from otel_reliability.kafka.messages import TICK

_logger = logging.getLogger("otel_reliability.kafka")

HURRY: Final = 0.05
"""Seconds between two ticks of a partition that has more to do than one message may bring about."""


class Ticker:
    """Sends ticks from a thread of its own. A tick that is lost is made up for by the next."""

    def __init__(self, producer: Any, interval: float) -> None:
        self.partitions: Sequence[tuple[str, int]] = ()
        """Where to: topics and partitions. Replaced as a whole, by any thread."""
        self._producer, self._interval = producer, interval
        self._hurried: frozenset[int] = frozenset()
        self._ending, self._woken = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self) -> None:
        """No more."""
        self._ending.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def hurry(self, number: int, *, behind: bool) -> None:
        """Whether a partition is to have ticks in quick succession. From the worker's thread."""
        if behind is (number in self._hurried):
            return
        self._hurried = self._hurried ^ {number}
        self._woken.set()

    def _run(self) -> None:
        due = time.monotonic() + self._interval
        while not self._ending.is_set():
            self._woken.clear()
            rest = due - time.monotonic()
            if self._hurried:
                self._ending.wait(HURRY)
                self._tick(self._hurried)
            elif rest > 0:
                self._woken.wait(rest)
            if time.monotonic() >= due:
                due = time.monotonic() + self._interval
                self._tick()

    def _tick(self, only: Collection[int] | None = None) -> None:
        for topic, number in self.partitions:
            if only is None or number in only:
                try:
                    self._producer.produce(topic, value=TICK, partition=number, buffer_error_max_tries=1)
                except Exception as error:  # noqa: BLE001 (brokers that are away are told of elsewhere)
                    _logger.debug("A tick was not sent: %s", error)
        self._producer.poll(0)
