"""Workers as processes of their own, as users start them; what goes into their topics, and what
comes out.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, cast

import pytest

from otel_reliability.model.record import RunRecord, read
from otel_reliability.model.span import RawSpan, TraceId
from tests.otlp import traces_protobuf
from tests.real.kafka.handle import Kafka
from tests.real.ports import HOST, free_port
from tests.real.process import Process, Programs
from tests.real.waiting import until
from tests.real.web import Answer, ask

CLIENT: Final = cast("Any", importlib.import_module("confluent_kafka"))
KEY: Final = "ab" * 16
SPANS = "spans"
LOGS = "logs"
RUNS = "runs"
READINGS = "readings"
DEAD = "dead"
SETTINGS: Final[Mapping[str, Any]] = {
    "hash_key": KEY,
    "windows": [{"name": "recording", "last": 100_000}],
    "metrics": {"min_runs": 2},
    "change": {"enabled": False},
    "assembly": {"linger": 1.0, "idle_timeout": 4.0, "reopen": 5.0},
    "service": {"series": "all"},
    "kafka": {
        "spans": SPANS,
        "runs": RUNS,
        "dead_letters": DEAD,
        "commit": 0.5,
        "tick": 0.5,
        "tell": 1.0,
        "session_timeout": 6.0,
        "transaction_timeout": 6.0,
    },
}
"""The settings of a report over a whole recording, and times in which a test can wait."""


class Worker(Process):
    """One worker: `otel-reliability kafka …`, ready when the broker has given it partitions."""

    def __init__(
        self, stage: str, broker: str, folder: Path, settings: Mapping[str, Any], *options: str
    ) -> None:
        self.stage = stage
        self.metrics, self.pages = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}"
        config = folder / "config.json"
        config.write_text(json.dumps(settings))
        doors = ["--metrics", self.metrics, "--ui", self.pages, "--state", str(folder / "state")]
        command = [
            sys.executable,
            "-m",
            "otel_reliability.cli",
            "kafka",
            stage,
            "--brokers",
            broker,
            *doors,
        ]
        super().__init__(
            folder.name,
            [*command, "--config", str(config), *options],
            log=folder / "worker.log",
            ready=lambda process: self.answers(),
        )

    def answers(self) -> bool:
        """Whether its doors are open."""
        with suppress(OSError):
            return ask(f"http://{self.pages}/healthz").status == 200
        return False

    def get(self, path: str) -> Answer:
        """Ask its probes."""
        return ask(f"http://{self.pages}{path}")

    def numbers(self) -> str:
        """What Prometheus reads; nothing while it is not there, or not ready."""
        with suppress(OSError):
            answer = ask(f"http://{self.metrics}/metrics")
            return answer.text if answer.status == 200 else ""
        return ""


class Workers(Programs):
    """Makes workers for one test, and kills them at its end. `settings` go over those of these
    tests.
    """

    def __call__(
        self, stage: str, broker: Kafka, *options: str, settings: Mapping[str, Any] | None = None
    ) -> Worker:
        """Start a worker."""
        worker = self.unstarted(stage, broker.address, *options, settings=settings)
        worker.start()
        return worker

    def unstarted(
        self, stage: str, broker: str, *options: str, settings: Mapping[str, Any] | None = None
    ) -> Worker:
        """One that is not started yet."""
        worker = Worker(
            stage, broker, self.new_folder(stage), _merged(SETTINGS, settings or {}), *options
        )
        self.running.callback(worker.kill)
        return worker


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    """Starts workers: `workers("assemble", broker)`."""
    with ExitStack() as running:
        yield Workers(tmp_path, running)


def topics_of(
    broker: Kafka, *, partitions: int = 4, names: Sequence[str] = (SPANS, RUNS, DEAD)
) -> None:
    admin = cast("Any", importlib.import_module("confluent_kafka.admin"))
    client = admin.AdminClient({"bootstrap.servers": broker.address})
    for made in client.create_topics(
        [admin.NewTopic(name, partitions, 1) for name in names]
    ).values():
        made.result(20)


Outgoing: TypeAlias = tuple[bytes | None, bytes] | tuple[bytes | None, bytes, float]
"""Key and value, and the second at which it was sent where that is not now."""


class Sender:
    """Writes messages, each under its key."""

    def __init__(self, broker: Kafka) -> None:
        self._producer = CLIENT.Producer({"bootstrap.servers": broker.address, "linger.ms": 5})
        self._lost: list[str] = []

    def send(self, messages: Iterable[Outgoing], topic: str = SPANS) -> None:
        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                self._lost.append(str(error))

        for key, value, *seconds in messages:
            at = round(seconds[0] * 1e3) if seconds else 0
            while True:
                try:
                    self._producer.produce(topic, value, key, timestamp=at, on_delivery=delivered)
                    break
                except BufferError:
                    self._producer.poll(0.5)
            self._producer.poll(0)

    def flush(self) -> None:
        """Wait until all is written."""
        assert self._producer.flush(120) == 0
        assert not self._lost


def send(broker: Kafka, messages: Iterable[Outgoing], topic: str = SPANS) -> None:
    sender = Sender(broker)
    sender.send(messages, topic)
    sender.flush()


def by_trace(spans: Iterable[RawSpan], size: int = 1_000) -> Iterator[tuple[bytes, bytes]]:
    """Spans as the Collector's exporter writes them: messages of at most so many spans of one
    trace, under its id.
    """
    found: dict[TraceId, list[RawSpan]] = {}
    for span in spans:
        found.setdefault(span.trace_id, []).append(span)
    for trace_id, some in found.items():
        for at in range(0, len(some), size):
            yield trace_id.hex().encode(), traces_protobuf(some[at : at + size])


class Reader:
    """Reads a topic from its beginning, and only what is committed."""

    def __init__(self, broker: Kafka, topic: str) -> None:
        options = {
            "bootstrap.servers": broker.address,
            "group.id": f"test-{topic}-{time.time_ns()}",
        }
        self._consumer = CLIENT.Consumer(
            {**options, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        number = len(self._consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        self._consumer.assign([CLIENT.TopicPartition(topic, part, 0) for part in range(number)])
        self.messages: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self, seconds: float = 0.2) -> list[Any]:
        """All messages so far, ticks left out."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None and message.value():
                self.messages.append(message)
        return self.messages

    def records(self) -> list[RunRecord]:
        """The same as run records."""
        return [read(message.value()) for message in self.read()]

    def until_final(self, runs: int, patience: float = 60.0) -> list[RunRecord]:
        """All records, once so many runs are final."""

        def final() -> list[RunRecord]:
            found = self.records()
            return found if sum(one.change.value == "final" for one in found) >= runs else []

        return until(final, f"{runs} runs to become final", patience=patience)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(below)
    for name, value in above.items():
        inner = found.get(name)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        found[name] = _merged(cast("Any", inner), cast("Any", value)) if both else value
    return found
