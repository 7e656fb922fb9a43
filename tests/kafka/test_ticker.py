"""What makes time pass on a partition without traffic."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from otel_reliability.config import Settings
from otel_reliability.kafka.assemble_stage import AssembleStage
from otel_reliability.kafka.stage import TICK, KafkaMessage
from otel_reliability.kafka.worker import Ticker
from otel_reliability.model.record import read
from otel_reliability.service.settings import KafkaSettings
from otel_reliability.testing import span
from tests.kafka.streams import MemoryValues
from tests.otlp import traces_protobuf


class Producer:
    """A client that can send to no partition 0, and notes what else it is asked."""

    def __init__(self) -> None:
        self.asked: SimpleQueue[object] = SimpleQueue()

    def produce(
        self, topic: str, *, value: bytes, partition: int, buffer_error_max_tries: int
    ) -> None:
        if partition == 0:
            raise BufferError
        self.asked.put((topic, value, partition))

    def poll(self, timeout: float) -> None:
        self.asked.put("poll")


def test_ticks_go_to_every_partition_again_and_again_until_the_end() -> None:
    """Whatever becomes of those to others; and deliveries are asked for, or the client's buffer
    would fill.
    """
    producer = Producer()
    ticker = Ticker(producer, 0.001)
    ticker.partitions = [("spans", 0), ("spans", 1), ("logs", 1)]
    ticker.start()
    asked = [producer.asked.get(timeout=10.0) for _ in range(6)]
    ticker.stop()

    assert asked == [("spans", TICK, 1), ("logs", TICK, 1), "poll"] * 2
    assert "ticker" not in {thread.name for thread in threading.enumerate()}


def test_a_tick_brings_on_the_time_of_its_partition() -> None:
    """The last run of a partition closes by it when `linger` has passed, not before."""
    settings = Settings(hash_key="00" * 16)
    partition = AssembleStage(settings, KafkaSettings(spans="spans")).open(0, MemoryValues())
    root = span(1, attributes={"gen_ai.operation.name": "invoke_agent"})
    partition.take(
        KafkaMessage("spans", root.trace_id.hex().encode(), traces_protobuf([root]), 0), 100.0
    )
    early, due = (
        list(partition.take(KafkaMessage("spans", None, TICK, 0), 100.0 + seconds))
        for seconds in (settings.assembly.linger - 0.1, settings.assembly.linger)
    )

    assert early == []
    assert [read(one.value).change.value for one in due] == ["closed"]
