"""Self-telemetry of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from otel_reliability.kafka.stage import Stage
from otel_reliability.kafka.worker import Account
from otel_reliability.service.health import Readiness
from otel_reliability.telemetry import names
from otel_reliability.telemetry.guard import Guard
from otel_reliability.telemetry.instruments import Point, counted


def points(stage: Stage, account: Account, readiness: Readiness, state: Path) -> Iterator[Point]:
    """Yield the current self-telemetry. `state` is the directory of the worker's copy
    of its state.
    """
    yield from counted(names.KAFKA_MESSAGES, account.messages)
    yield from counted(names.KAFKA_DEAD_LETTERS, account.dead)
    yield from counted(names.KAFKA_STARTS, account.starts)
    yield from counted(names.KAFKA_LAG, account.lags)
    yield names.KAFKA_PARTITIONS.name, len(account.partitions), {}
    yield names.KAFKA_REBALANCES.name, account.rebalances, {}
    yield names.KAFKA_RESTORE.name, account.restore, {}
    yield names.KAFKA_STATE.name, size_of(state), {}
    yield names.READY.name, 0 if readiness.reasons else 1, {}
    yield from counted(names.FAULTS, Guard.faults)
    yield from stage.numbers()


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder. A file that disappears meanwhile
    counts as 0.
    """
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total
