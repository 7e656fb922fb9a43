from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from itertools import islice

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import benchmarks.recorded
from benchmarks.job import Job
from benchmarks.otlp import SPANS
from benchmarks.recorded import CAPTURED, lines, recorded
from benchmarks.shapes import RECORDED, SHAPES, WEB, traffic
from benchmarks.worker import worker

KINDS = [RECORDED, WEB, *SHAPES] if CAPTURED.exists() else [WEB, *SHAPES]


@pytest.fixture(autouse=True, scope="module")
def few_captures_are_read_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Traffic copies what it repeats, so that all of it may share the captures. One in six is
    enough of them to be repeated.
    """
    few = tmp_path_factory.mktemp("captured")
    for path in sorted(CAPTURED.glob("*.jsonl.gz"))[::6]:
        (few / path.name).symlink_to(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmarks.recorded, "CAPTURED", few)
        patch.setattr(benchmarks.recorded, "_load", functools.cache(benchmarks.recorded._load))
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_requests_share_a_span(kind: str) -> None:
    found = [ExportTraceServiceRequest.FromString(body) for body in islice(traffic(kind), 4)]
    spans = [
        span
        for one in found
        for part in one.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]

    assert len(spans) == 4 * SPANS
    assert (
        len({span.span_id for span in spans}) >= len(spans) - 5
    )  # a capture may report a span twice


@pytest.mark.parametrize("kind", KINDS)
def test_the_job_makes_runs_of_every_kind_of_traffic(kind: str) -> None:
    job = Job()
    requests = 4
    for body in islice(traffic(kind), requests):
        job.receive(body)
    job.wait(10.0)

    assert job.engine.accounts["received", ""] == requests * SPANS
    assert bool(job.engine.closed) == (kind != WEB)


def test_a_worker_measures_round_after_round() -> None:
    with worker("one agent", native=False, requests=2, warm=2) as measure:
        costs = [measure(), measure()]

    assert all(0 < cost.parse < cost.job for cost in costs)


@pytest.mark.skipif(not CAPTURED.exists(), reason="../shared/corpora/captured is not here")
def test_recorded_lines_are_otlp_json() -> None:
    (span, *_) = json.loads(next(lines(recorded())))["resourceSpans"][0]["scopeSpans"][0]["spans"]

    assert len(bytes.fromhex(span["traceId"])) == 16
    assert len(bytes.fromhex(span["spanId"])) == 8
