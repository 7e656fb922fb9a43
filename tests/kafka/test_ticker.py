"""Ticks come of themselves, to every partition a worker has, and when somebody asks."""

from __future__ import annotations

from typing import Any

from otel_reliability.kafka.ticker import Ticker
from tests.real.waiting import until


class Producer:
    """Remembers what it is given. Brokers that are away take nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.away = False

    def produce(self, topic: str, *, value: bytes, partition: int, **_: Any) -> None:
        """Take a message, which must hold nothing."""
        if self.away:
            raise BufferError
        assert value == b""
        self.sent.append((topic, partition))

    def poll(self, _: float) -> None:
        """Nothing to do."""


def test_ticks_go_to_all_partitions_and_at_once_to_those_that_are_asked_for() -> None:
    """One round after the other; brokers that are away cost a tick, not the ticker."""
    producer = Producer()
    ticker = Ticker(producer, 0.01)
    ticker.tick([("spans", 3)])
    assert producer.sent == [("spans", 3)]

    ticker.partitions = [("spans", 0), ("logs", 0)]
    producer.away = True
    ticker.start()
    ticker.tick([("spans", 3)])
    producer.away = False
    until(lambda: producer.sent[-4:] == [("spans", 0), ("logs", 0)] * 2, "two rounds")
    ticker.stop()
    assert set(producer.sent[1:]) == {("spans", 0), ("logs", 0)}
