"""Run a stage until SIGTERM or SIGINT: start it again after an error, and log each problem once."""

from __future__ import annotations

import logging
import signal
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from otel_reliability.errors import ConfigurationError
from otel_reliability.kafka.aggregate_stage import AggregateStage
from otel_reliability.kafka.assemble_stage import AssembleStage
from otel_reliability.kafka.brokers import NotYet, check_topics, explain
from otel_reliability.kafka.endpoints import WorkerEndpoints
from otel_reliability.kafka.self_telemetry import points
from otel_reliability.kafka.stage import Stage
from otel_reliability.kafka.worker import Account, Worker
from otel_reliability.service.checks import check_workers
from otel_reliability.service.health import RECOVERING, Readiness
from otel_reliability.service.heap import collect_seldom
from otel_reliability.service.settings import Config
from otel_reliability.telemetry.exposition import Exposition

_logger = logging.getLogger("otel_reliability.kafka")

STAGES: Final = {"assemble": AssembleStage, "aggregate": AggregateStage}
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds before a stage is started again, doubled each time."""
STEADY: Final = 60.0
"""Seconds after which a stage that runs counts as well."""
WELL: Final = 15.0
"""Seconds after which trouble is over: what is not permitted shows when there is something to
write.
"""
AGAIN: Final = 300.0
"""Seconds after which the same problem is logged again."""
STUCK: Final = 120.0
"""Seconds for which a worker may not come round before it counts as not healthy."""


class Trouble:
    """Logs a problem once, and again after a while."""

    def __init__(self) -> None:
        self._last = ""
        self._since = 0.0

    def report(self, what: str) -> None:
        """Log a problem, unless it is the last one that was logged."""
        now = time.monotonic()
        if what != self._last or now >= self._since + AGAIN:
            self._last = what
            self._since = now
            _logger.error("%s", what)

    def over(self) -> None:
        if self._last:
            _logger.info("That is over.")
            self._last = ""


class Ready(Readiness):
    """Not ready while state is read back, and while there are no partitions yet."""

    def __init__(self, account: Account) -> None:
        super().__init__()
        self.worker: Worker | None = None
        self._account = account

    @property
    def reasons(self) -> dict[str, str]:
        found = super().reasons
        worker = self.worker
        if worker is not None and (worker.restoring or not self._account.ready):
            found[RECOVERING] = "state is being read back"
        return found


class Runner:
    """One worker process."""

    def __init__(self, stage: Stage, config: Config, state: Path) -> None:
        self._stage = stage
        self._config = config
        self._state = state
        self._account = Account()
        self._ready = Ready(self._account)
        exposition = Exposition(
            stage.sources, partial(points, stage, self._account, self._ready, state)
        )
        self.endpoints = WorkerEndpoints(config.service, exposition, self._ready, self._healthy)
        self._stopping = threading.Event()
        self._trouble = Trouble()

    def run(self) -> None:
        """Work until SIGTERM or SIGINT. Raises `ConfigurationError` for what does not heal by
        itself.
        """
        self._ready.hold("starting", "the brokers have given this worker nothing to do yet")
        self.endpoints.open()
        for name, place in self.endpoints.addresses.items():
            _logger.info("%s listens on %s", name, place)
        try:
            with self._signals():
                self._run()
        finally:
            self.endpoints.close()
        _logger.info("Stopped.")

    def _run(self) -> None:
        """Run the stage until it is asked to end, and again after an error, whose
        reason is logged.
        """
        pause = PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                sizes = check_topics(self._stage, self._config.kafka)
                self._account.starts["start"] += 1
                self._work(sizes)
            except NotYet as not_yet:
                self._hold(not_yet.reason, str(not_yet))
            except ConfigurationError:
                raise
            except (
                Exception
            ) as error:  # whatever it is: what was not committed has not happened, and comes again
                reason, what = explain(error)
                self._hold(
                    reason, f"The stage ended, and starts again from what is committed: {what}"
                )
                _logger.debug("Where it ended:", exc_info=True)
            else:
                return
            pause = PAUSE if time.monotonic() >= began + STEADY else min(2 * pause, LONGEST_PAUSE)
            self._stopping.wait(pause)

    def _work(self, sizes: dict[str, int]) -> None:
        worker = Worker(self._stage, self._config.kafka, self._state, self._account)
        if self._stopping.is_set():
            return
        sizes_text = ", ".join(f"{name} ({sizes[name]} partitions)" for name in self._stage.inputs)
        _logger.info("%s reads %s and writes %s.", self._stage.name, sizes_text, self._stage.output)
        self._ready.worker = worker
        for reason in self._ready.reasons:
            self._ready.release(reason)
        over = threading.Timer(WELL, self._trouble.over)
        over.daemon = True
        over.start()
        try:
            worker.run()
        finally:
            over.cancel()
            self._ready.worker = None
            self._account.ready = False
            # the engine underneath leaves the signals to itself, also when it has failed
            self._listen()
            if worker.asked:
                self._stopping.set()

    def _hold(self, reason: str, what: str) -> None:
        self._account.starts[reason] += 1
        self._ready.hold(reason, what)
        self._trouble.report(what)

    def _healthy(self) -> bool:
        worker = self._ready.worker
        return worker is None or worker.restoring or time.monotonic() - self._account.beat < STUCK

    @contextmanager
    def _signals(self) -> Generator[None]:
        """Until a stage is at work the process ends by these; then the engine underneath takes
        them.
        """
        before = {number: signal.getsignal(number) for number in SIGNALS}
        self._listen()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _listen(self) -> None:
        def stop(*_: object) -> None:
            self._stopping.set()

        for number in SIGNALS:
            signal.signal(number, stop)


def run(name: str, config: Config) -> None:
    """Run a stage by its name. Raises `ConfigurationError` where it cannot begin."""
    check_workers(config)
    collect_seldom()
    stage: Stage = STAGES[name](config, config.kafka)
    with tempfile.TemporaryDirectory(prefix="otel-reliability-") as passing:
        state = Path(passing if config.kafka.state is None else config.kafka.state)
        Runner(stage, config, state).run()
