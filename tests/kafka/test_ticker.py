"""Ticks are sent by a thread, to every partition that a worker has."""

from __future__ import annotations

from typing import Any

from otel_reliability.kafka.ticker import Ticker
from tests.real.waiting import until


class Producer:
    """Remembers what it is given. Brokers that are away accept nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.away, self.refused = True, 0

    def produce(self, topic: str, *, value: bytes, partition: int, **_: Any) -> None:
        """Take a message, which must hold nothing."""
        if self.away:
            self.refused += 1
            raise BufferError
        assert value == b""
        self.sent.append((topic, partition))

    def poll(self, _: float) -> None:
        """Nothing to do."""


def test_ticks_go_to_all_partitions() -> None:
    producer = Producer()
    ticker = Ticker(producer, 0.01)
    ticker.partitions = [("spans", 0), ("logs", 0)]
    ticker.start()
    until(lambda: producer.refused >= 2, "brokers that are away")
    producer.away = False
    until(lambda: producer.sent[-4:] == [("spans", 0), ("logs", 0)] * 2, "two rounds")
    ticker.stop()
    assert set(producer.sent) == {("spans", 0), ("logs", 0)}
