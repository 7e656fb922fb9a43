"""The Collector, built from its modules: what the tests of the service will lean on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.real import otlp
from tests.real.collector.handle import Collectors, Config
from tests.real.pipelines import pipeline, spans_of, to_file
from tests.real.waiting import until
from tests.real.web import answers
from tests.shared import shared

pytestmark = pytest.mark.real

SERVICES = [f"service-{number}" for number in range(20)]
TRACE = bytes(range(16))


def test_takes_spans_over_grpc_and_http_and_writes_them(collector: Collectors, tmp_path: Path) -> None:
    """A span sent through either door of the OTLP receiver comes out of the file exporter as it went in."""
    out = tmp_path / "spans.jsonl"
    config: Config = {
        "receivers": {"otlp": {}},
        "exporters": {"file": to_file(out)},
        "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
    }
    running = collector(config)
    by_grpc = otlp.span(TRACE, b"\x01" * 8, "chat", gen_ai__operation__name="chat")
    by_http = otlp.span(TRACE, b"\x02" * 8, "execute_tool", parent=b"\x01" * 8, gen_ai__usage__input_tokens=7)

    otlp.send_grpc(running.grpc, otlp.of_service("by-grpc", [by_grpc]))
    otlp.send(running.http, otlp.of_service("by-http", [by_http]))

    found = dict(spans_of(out, 2))
    assert found["by-grpc"] == by_grpc
    assert found["by-http"] == by_http
    assert running.count("otelcol_receiver_accepted_spans", receiver="otlp") == 2


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
def test_takes_a_recording_in_either_encoding(collector: Collectors, tmp_path: Path, encoding: str) -> None:
    """Replaying a recording delivers every line of it, ids in hex and numbers as strings understood."""
    recording, out = tmp_path / "recording.jsonl", tmp_path / "spans.jsonl"
    line = (
        '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"%s"}}]},'
        '"scopeSpans":[{"spans":[{"traceId":"000102030405060708090a0b0c0d0e0f","spanId":"0101010101010101",'
        '"name":"chat","kind":3,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000001000000000"}]}]}]}\n'
    )
    recording.write_text("".join(line % service for service in SERVICES))
    config: Config = {
        "receivers": {"otlp": {}},
        "exporters": {"file": to_file(out)},
        "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
    }

    sent = otlp.replay(recording, collector(config).http, encoding=encoding)

    assert sent == len(SERVICES)
    found = spans_of(out, len(SERVICES))
    assert [service for service, _ in found] == SERVICES
    assert {(span.trace_id, span.end_time_unix_nano) for _, span in found} == {(TRACE, 1_700_000_001_000_000_000)}


def test_takes_recordings_of_real_agents(collector: Collectors, tmp_path: Path) -> None:
    """Spans of real frameworks come out one by one as the recording has them; evaluation events are taken as logs."""
    recording, out = shared("corpora/captured/langgraph-openlit.jsonl.gz"), tmp_path / "spans.jsonl"
    events = shared("corpora/captured/pydantic_ai-evals.logs.jsonl.gz")
    config: Config = {
        "receivers": {"otlp": {}},
        "exporters": {"file": to_file(out), "nop": {}},
        "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"]), "logs": pipeline(["otlp"], ["nop"])}},
    }
    running = collector(config)

    otlp.replay(recording, running.http)
    sent = otlp.replay(events, running.http)

    recorded = otlp.written(recording)
    found = spans_of(out, len(recorded))
    assert {span.span_id: span.name for _, span in found} == {span.span_id: span.name for _, span in recorded}
    assert running.count("otelcol_receiver_accepted_log_records") >= sent > 0


def test_the_tail_sampler_keeps_whole_traces_that_failed(collector: Collectors, tmp_path: Path) -> None:
    """Of a failed and a fine trace the tail sampler passes all spans of the failed one and none of the other."""
    out = tmp_path / "spans.jsonl"
    policy = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
    config: Config = {
        "receivers": {"otlp": {}},
        "processors": {"tail_sampling": {"decision_wait": "1s", "policies": [policy]}},
        "exporters": {"file": to_file(out)},
        "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"], ["tail_sampling"])}},
    }
    running = collector(config)
    fine, failed = b"\x0a" * 16, b"\x0b" * 16
    root = otlp.span(failed, b"\x03" * 8, "invoke_agent")
    root.status.code = root.status.STATUS_CODE_ERROR
    child = otlp.span(failed, b"\x04" * 8, "chat", parent=root.span_id)

    otlp.send(running.http, otlp.of_service("a", [otlp.span(fine, b"\x05" * 8, "invoke_agent"), child]))
    otlp.send(running.http, otlp.of_service("a", [root]))

    assert {span.span_id for _, span in spans_of(out, 2)} == {root.span_id, child.span_id}
    decided = partial(running.count, "otelcol_processor_tail_sampling_global_count_traces_sampled")
    assert until(lambda: decided(sampled="false"), "a decision on the fine trace") == 1


def test_a_static_split_gives_each_service_to_one_of_two(collector: Collectors, tmp_path: Path) -> None:
    """Two filters on a hash of the service's name send every service, whole, to exactly one of two replicas."""
    outs = [tmp_path / "left.jsonl", tmp_path / "right.jsonl"]
    name = 'FNV(resource.attributes["service.name"])'
    remainder = f"{name} - 2 * ({name} / 2)"
    config: Config = {
        "receivers": {"otlp": {}},
        "processors": {
            "filter/left": {"error_mode": "propagate", "traces": {"span": [f"{remainder} != 0"]}},
            "filter/right": {"error_mode": "propagate", "traces": {"span": [f"{remainder} == 0"]}},
        },
        "exporters": {"file/left": to_file(outs[0]), "file/right": to_file(outs[1])},
        "service": {
            "pipelines": {
                "traces/left": pipeline(["otlp"], ["file/left"], ["filter/left"]),
                "traces/right": pipeline(["otlp"], ["file/right"], ["filter/right"]),
            }
        },
    }
    running = collector(config)

    for at, service in enumerate(SERVICES):
        pair = [otlp.span(bytes([at + 1]) * 16, bytes([at + 1, of] * 4), "chat") for of in (1, 2)]
        otlp.send(running.http, otlp.of_service(service, pair))

    until(lambda: sum(len(otlp.written(out)) for out in outs) >= 2 * len(SERVICES), "every span at either side")
    left, right = ([service for service, _ in otlp.written(out)] for out in outs)
    assert sorted(left + right) == sorted(SERVICES * 2)
    assert not set(left) & set(right)
    assert left
    assert right


def test_waits_for_an_exporter_that_is_away(collector: Collectors, tmp_path: Path) -> None:
    """What one Collector takes while the next is down arrives once that one is back on its address."""
    out = tmp_path / "spans.jsonl"
    last = collector(
        {
            "receivers": {"otlp": {}},
            "exporters": {"file": {**to_file(out), "append": True}},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["file"])}},
        }
    )
    retry = {"initial_interval": "100ms", "max_interval": "200ms"}
    first = collector(
        {
            "receivers": {"otlp": {}},
            "exporters": {"otlp_http": {"endpoint": last.http, "retry_on_failure": retry}},
            "service": {"pipelines": {"traces": pipeline(["otlp"], ["otlp_http"])}},
        }
    )
    assert last.kill() == -9
    assert not last.running

    otlp.send(first.http, otlp.of_service("a", [otlp.span(TRACE, b"\x01" * 8, "chat")]))
    last.start()

    assert [span.span_id for _, span in spans_of(out, 1)] == [b"\x01" * 8]
    assert last.stop() == 0


def test_runs_a_file_on_ports_of_its_own(collector: Collectors, tmp_path: Path) -> None:
    """A configuration file with fixed addresses runs twice at once, its variables filled in from the environment."""
    outs = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    file = tmp_path / "collector.yaml"
    file.write_text("""
        receivers: {otlp: {protocols: {grpc: {endpoint: "0.0.0.0:4317"}, http: {endpoint: "0.0.0.0:4318"}}}}
        exporters: {file: {path: "${env:OUT}", flush_interval: 50ms}}
        extensions: {health_check: {endpoint: "0.0.0.0:13133"}}
        service: {extensions: [health_check], pipelines: {traces: {receivers: [otlp], exporters: [file]}}}
    """)

    both = [collector(file, env={"OUT": str(out)}) for out in outs]

    for number, running in enumerate(both):
        assert answers(running.health_url)
        otlp.send(running.http, otlp.of_service(f"service-{number}", [otlp.span(TRACE, b"\x01" * 8, "chat")]))
    assert [spans_of(out, 1)[0].service for out in outs] == ["service-0", "service-1"]


def test_names_what_is_wrong_with_a_configuration(collector: Collectors) -> None:
    """`complaint` is empty for a good configuration and names the unknown key of a bad one."""
    good: Config = {
        "receivers": {"otlp": {"protocols": {"http": {}}}},
        "exporters": {"nop": {}},
        "service": {"pipelines": {"traces": pipeline(["otlp"], ["nop"])}},
    }

    assert collector.complaint(good) == ""
    assert "no_such_key" in collector.complaint({**good, "exporters": {"nop": {"no_such_key": 1}}})
