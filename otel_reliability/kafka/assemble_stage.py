"""The first stage: the Collector's messages of spans, keyed by trace → run records,
keyed by agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeAlias

from otel_reliability import conventions
from otel_reliability.config import Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.kafka.partition_values import KeyValues
from otel_reliability.kafka.stage import KafkaMessage, Outgoing, Stage
from otel_reliability.kafka.traces import Traces
from otel_reliability.model.span import AgentSpan, TraceId
from otel_reliability.service.answers import Encoding, OtlpSignal
from otel_reliability.service.decoded import Decoded, Decoder
from otel_reliability.service.settings import KafkaSettings
from otel_reliability.sources.otlp_json import is_json
from otel_reliability.telemetry import names
from otel_reliability.telemetry.instruments import Point, counted
from otel_reliability.telemetry.names import Instrument

Counts: TypeAlias = Counter[tuple[Instrument, str | tuple[str, str]]]
"""Numbers by instrument and values of its attributes."""


class AssembleStage(Stage):
    """Rebuilds the runs of the partitions that a worker has."""

    def __init__(self, settings: Settings, kafka: KafkaSettings) -> None:
        reader = Reader(settings, conventions.TABLE)
        self._settings = settings
        self._signals = {kafka.spans: OtlpSignal.TRACES}
        if kafka.logs is not None:
            self._signals[kafka.logs] = OtlpSignal.LOGS
        self._decode = Decoder(reader)
        self._partitions: dict[int, AssemblePartition] = {}
        self._before = Counts()
        self.name = "assemble"
        self.inputs = tuple(self._signals)
        self.output = kafka.runs

    def open(self, number: int, store: KeyValues) -> AssemblePartition:
        found = self._partitions[number] = AssemblePartition(self._settings, store, self._read)
        return found

    def close(self, number: int) -> None:
        gone = self._partitions.pop(number, None)
        if gone is not None:
            self._before.update(gone.counts())

    def numbers(self) -> Iterable[Point]:
        """Yield dispositions of spans, and counts of what could not be joined. Partitions that were
        given up stay counted.
        """
        partitions = list(self._partitions.values())
        total = self._before.copy()
        for one in partitions:
            total.update(one.counts())
        for (spec, values), number in total.items():
            yield from counted(spec, {values: number})
        yield names.KAFKA_TRACES.name, sum(len(one.traces) for one in partitions), {"state": "open"}

    def _read(self, message: KafkaMessage) -> Decoded:
        """Read a message in the encodings `otlp_proto` and `otlp_json` of the Collector."""
        encoding = Encoding.JSON if is_json(message.value) else Encoding.PROTOBUF
        return self._decode(self._signals[message.topic], encoding, message.value)


class AssemblePartition:
    """One partition of spans, and that of log events with the same number."""

    def __init__(
        self, settings: Settings, store: KeyValues, read: Callable[[KafkaMessage], Decoded]
    ) -> None:
        self.traces = Traces(settings, store)
        self._read = read
        self._counted: Counter[tuple[str, str]] = Counter()

    def counts(self) -> Counts:
        numbers = {
            names.SPANS: self._counted + self.traces.spans,
            names.KAFKA_APART: self.traces.apart,
            names.KAFKA_RECORDS: self.traces.records,
        }
        return Counts(
            {
                (spec, values): number
                for spec, some in numbers.items()
                for values, number in some.items()
            }
        )

    def take(self, message: KafkaMessage, now: float) -> Iterable[Outgoing]:
        if not message.value:
            return self.traces.tick(now)
        decoded = self._read(message)
        self._count(decoded)
        if message.key is None or len(message.key) != 32:
            self.traces.apart["no_key"] += 1
        elif _is_foreign(message.key, decoded.spans):
            self.traces.apart["other_key"] += 1
        return self.traces.take(decoded.spans, decoded.evaluations, now)

    def save(self) -> None:
        self.traces.save()

    def _count(self, decoded: Decoded) -> None:
        self._counted["received", ""] += len(decoded.spans)
        for reason, number in decoded.malformed.items():
            self._counted["received", ""] += number
            self._counted["malformed", reason] += number


def _is_foreign(key: bytes, spans: Iterable[AgentSpan]) -> bool:
    """Return whether a message holds spans of another trace than its key: the rest of that trace
    may be in any partition.
    """
    try:
        named: TraceId = bytes.fromhex(key.decode("ascii"))
    except ValueError:
        return True
    return any(span.trace_id != named for span in spans)
