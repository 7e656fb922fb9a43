"""Messages in the encodings that the Collector's Kafka exporter writes."""

from __future__ import annotations

import json

import pytest

from otel_reliability.config import Settings
from otel_reliability.kafka.assemble_stage import AssembleStage
from otel_reliability.kafka.stage import KafkaMessage
from otel_reliability.model.record import read
from otel_reliability.service.answers import Refused
from otel_reliability.service.settings import KafkaSettings
from otel_reliability.sources.otlp_write import traces_json
from tests.kafka.streams import MemoryValues
from tests.otlp import traces_protobuf
from tests.service.running import run_of

SPANS = run_of()
KEY = SPANS[0].trace_id.hex().encode()
BODIES = {
    "otlp_proto": traces_protobuf(SPANS),
    "otlp_json": json.dumps(traces_json(SPANS)).encode(),
}


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_message_in_each_encoding_is_read(encoding: str) -> None:
    settings = Settings(hash_key="00" * 16)
    partition = AssembleStage(settings, KafkaSettings(spans="spans")).open(0, MemoryValues())

    list(partition.take(KafkaMessage("spans", KEY, BODIES[encoding], 0), 100.0))
    later = KafkaMessage("spans", KEY, traces_protobuf([]), 0)
    records = list(partition.take(later, 100.0 + settings.assembly.linger))

    assert [read(one.value).run.path for one in records] == [("search",)]


@pytest.mark.parametrize("body", [b'{"resource_spans": []}', b"{", b"\n{" + bytes(123)])
def test_message_that_cannot_be_read_is_refused(body: bytes) -> None:
    settings = Settings(hash_key="00" * 16)
    partition = AssembleStage(settings, KafkaSettings(spans="spans")).open(0, MemoryValues())

    with pytest.raises(Refused):
        list(partition.take(KafkaMessage("spans", KEY, body, 0), 100.0))
