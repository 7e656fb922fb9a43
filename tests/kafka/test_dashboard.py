"""What the dashboards and the alerts ask of workers is what workers tell, under these names and
with these labels.
"""

from __future__ import annotations

import re
from pathlib import Path

from dashboards.alerts import ALERTS
from otel_reliability.config import Settings
from otel_reliability.kafka.assemble_stage import AssembleStage
from otel_reliability.kafka.self_telemetry import points
from otel_reliability.kafka.stage import KafkaMessage
from otel_reliability.kafka.worker import Account
from otel_reliability.service.health import Readiness
from otel_reliability.service.settings import KafkaSettings
from otel_reliability.telemetry.exposition import Exposition
from otel_reliability.telemetry.prometheus import Prometheus
from tests.dashboards.asking import questions
from tests.kafka.streams import BEGIN, MemoryValues
from tests.otlp import traces_protobuf
from tests.service.running import run_of

ASKED = re.compile(r"otel_reliability_kafka_\w+")
BY = re.compile(r"\bby \(([\w, ]+)\)")
TOLD = re.compile(r"^(otel_reliability_kafka_\w+)(?:\{(.*)\})? ", re.MULTILINE)


def told(folder: Path) -> dict[str, set[str]]:
    """Every series of a worker of the first stage that has seen all there is, with its labels."""
    stage = AssembleStage(Settings(hash_key="00" * 16), KafkaSettings())
    account = Account()
    partition = stage.open(0, MemoryValues())
    partition.take(KafkaMessage("otlp_spans", None, traces_protobuf(run_of(1)), 0), BEGIN)
    partition.take(KafkaMessage("otlp_spans", None, b"", 0), BEGIN + 10)
    account.messages["otlp_spans", "records"] = account.dead["undecodable"] = account.starts[
        "start"
    ] = 1
    account.lags = {("otlp_spans", "0"): 7}
    own = points(stage, account, Readiness(), folder)
    text = "".join(Prometheus(Exposition(tuple, lambda: own), {}).text())
    return {name: set(re.findall(r'(\w+)="', labels)) for name, labels in TOLD.findall(text)}


def test_every_question_about_workers_is_one_that_they_answer(tmp_path: Path) -> None:
    known = told(tmp_path)
    asked = [one.expr for one in questions() if ASKED.search(one.expr)]
    asked += [alert.value for alert in ALERTS if ASKED.search(alert.value)]

    assert len(asked) >= 2
    for question in asked:
        for name in ASKED.findall(question):
            assert name in known, question
            for labels in BY.findall(question):
                assert set(labels.split(", ")) - {"job", "instance"} <= known[name], question
