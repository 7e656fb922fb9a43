"""Hand every change of a run on to another service, from a thread of its own, in the order in which they happened.

A record is kept until it is taken, or refused for good, or there are too many. It may be sent twice; whoever takes it knows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from otel_reliability.model.event import RunEvent
from otel_reliability.model.record import RunRecord
from otel_reliability.service.run_logs import logs_of
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.otlp import Answer, Sender

_logger = logging.getLogger("otel_reliability.service")

MOST: Final = 100_000
"""Records that wait to be sent; beyond, the oldest are lost, and counted."""
BATCH: Final = 256
"""Records a request."""
PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds before a request is sent again, doubled each time, where its receiver does not say."""
GATHER: Final = 0.2
"""Seconds in which records gather to a request."""

_SEND: Final = Guard("handing runs on")


class Emission:
    """Sends what it is told of runs. `outcomes` counts requests by what became of them, and lost records as `overflow`."""

    def __init__(self, sender: Sender, wall: Callable[[], int], *, most: int = MOST) -> None:
        self.outcomes: Counter[str] = Counter()
        self.duration = 0.0
        self._sender, self._wall, self._most = sender, wall, most
        self._waiting: deque[RunRecord] = deque()
        self._last_ns = 0
        self._stopping = threading.Event()
        self._end: float | None = None
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="emission", daemon=True)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def limit(self) -> int:
        """Records that may wait."""
        return self._most

    def __call__(self, event: RunEvent, now: float) -> None:
        """Something happened to a run. Of two records of one run the later has the greater time, whatever the clock does."""
        self._last_ns = max(self._last_ns + 1, self._wall())
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self.outcomes["overflow"] += 1
        self._waiting.append(RunRecord(event.change, event.run, self._last_ns))

    def to_state(self) -> Any:
        """What waits to be sent, and the time of the last record."""
        return (list(self._waiting), self._last_ns)

    def restore(self, state: Any) -> None:
        """Take over what `to_state` gave."""
        waiting, self._last_ns = state
        self._waiting.extend(waiting)

    def start(self) -> None:
        """From now on."""
        self._thread.start()

    def stop(self, patience: float) -> None:
        """Send what is left, as far as that goes within so many seconds, and end."""
        self._end = time.monotonic() + patience
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(patience + GATHER)
        if self._waiting:
            _logger.error("%d changes of runs could not be handed on before the end.", len(self._waiting))
        self._sender.close()

    def _run(self) -> None:
        while not self._stopping.wait(GATHER):
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        pause = PAUSE
        while self._waiting:
            batch = [self._waiting[at] for at in range(min(BATCH, len(self._waiting)))]
            told = self._send(batch)
            if told is None:
                pause = PAUSE
                self._drop(batch)
                continue
            if self._end is not None and time.monotonic() >= self._end:
                return
            if self._stopping.wait(min(max(told, pause), LONGEST_PAUSE)):
                time.sleep(GATHER)
            pause *= 2

    def _send(self, batch: list[RunRecord]) -> float | None:
        """Send a batch. Gives after how many seconds it is to be sent again; None: it is done with."""
        began = time.monotonic()
        with _SEND:
            timeout = None if self._end is None else max(0.1, self._end - began)
            answer = self._sender.send(logs_of(batch), timeout)
            self.duration = time.monotonic() - began
            self.outcomes[answer.outcome] += 1
            self._tell(answer, len(batch))
            return None if answer.taken else answer.retry_after
        self.outcomes["fault"] += 1
        return None

    def _tell(self, answer: Answer, records: int) -> None:
        """Say so when sending begins to fail, when it works again, and what is lost."""
        if answer.taken or answer.retry_after is None:
            if self._failing:
                _logger.info("The receiver of runs answers again.")
            if not answer.taken:
                _logger.error("%d changes of runs are refused for good (%s), and lost.", records, answer.outcome)
            self._failing = False
        elif not self._failing:
            self._failing = True
            _logger.warning("Runs are not taken (%s). They wait, up to %d changes of them.", answer.outcome, self._most)

    def _drop(self, batch: list[RunRecord]) -> None:
        """The batch is done with; what found no room meanwhile may have pushed some of it out already."""
        last = batch[-1].told_ns
        while self._waiting and self._waiting[0].told_ns <= last:
            self._waiting.popleft()
