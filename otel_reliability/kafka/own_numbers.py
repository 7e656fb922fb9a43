"""A worker's self-telemetry: its messages and partitions, and what its stage counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from otel_reliability.kafka.stage import Stage
from otel_reliability.kafka.worker import Account
from otel_reliability.service.readiness import Readiness
from otel_reliability.telemetry import names
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.instruments import Point


class OwnNumbers:
    """All of it as it is now. `state` is where the worker's copy of its state stands."""

    def __init__(self, stage: Stage, account: Account, readiness: Readiness, state: Path) -> None:
        self._stage, self._account, self._readiness, self._state = stage, account, readiness, state

    def __call__(self) -> Iterator[Point]:
        """Every point."""
        account = self._account
        for (topic, kind), number in dict(account.messages).items():
            yield names.KAFKA_MESSAGES.name, number, {"topic": topic, "kind": kind}
        for reason, number in dict(account.dead).items():
            yield names.KAFKA_DEAD_LETTERS.name, number, {"reason": reason}
        for reason, number in dict(account.starts).items():
            yield names.KAFKA_STARTS.name, number, {"reason": reason}
        for (topic, partition), number in account.lags.items():
            yield names.KAFKA_LAG.name, number, {"topic": topic, "partition": str(partition)}
        yield names.KAFKA_PARTITIONS.name, len(account.partitions), {}
        yield names.KAFKA_REBALANCES.name, account.rebalances, {}
        yield names.KAFKA_RESTORE.name, account.restore, {}
        yield names.KAFKA_STATE.name, size_of(self._state), {}
        yield names.READY.name, 0 if self._readiness.reasons else 1, {}
        for place, number in Guard.faults.items():
            yield names.FAULTS.name, number, {"place": place}
        yield from self._stage.numbers()


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder. What goes while it is looked at counts as gone."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total
