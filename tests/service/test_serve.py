from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import call
from tests.otlp import traces_protobuf
from tests.real.ports import HOST, free_port
from tests.real.process import Died
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import PROTOBUF, run_of
from tests.service.served import Served, Services
from tests.telemetry.numbers import otlp_numbers
from tests.telemetry.receivers import over_grpc, over_http

OPEN: dict[str, Any] = {"assembly": {"linger": "1h"}}
"""Runs stay open until the service ends."""


def send_run(served: Served) -> int:
    body = traces_protobuf(run_of())
    return ask(f"{served.http}/v1/traces", body=body, headers={"Content-Type": PROTOBUF}).status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_works_off_what_came_and_tells_it_once_more(
    serve: Services, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
    with over_grpc() as sink:
        served = serve("--push", sink.url, **OPEN)
        assert send_run(served) == 200
        assert sink.came == []
        os.kill(served.pid, number)
        until(lambda: not served.running, "the process to end", patience=60)
        numbers = otlp_numbers(came.body for came in sink.came)

    runs = {key: value for key, value in numbers.items() if key[0] == "agent.reliability.runs"}
    assert sum(runs.values()) == 1
    assert served.stop() == 0
    assert "Stopped." in served.log.read_text()


def test_opentelemetry_s_own_variables_say_where_metrics_go(
    serve: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    with over_http() as sink:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue%20team")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=replica-7")
        served = serve()
        until(lambda: len(sink.came) >= 2, "two sendings")
        served.stop()
        first = sink.came[0]

    assert (first.path, first.headers["x-tenant"]) == ("/v1/metrics", "blue team")
    assert b"replica-7" in first.body


def test_a_sink_that_is_away_does_not_keep_it_from_ending(
    serve: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
    served = serve("--push", f"http://{HOST}:{free_port()}")
    send_run(served)

    assert served.stop(patience=60) == 0


def test_nothing_of_what_passes_through_is_logged(serve: Services) -> None:
    served = serve("--log-level", "debug", service={"token": "sesame-open"})
    body = traces_protobuf(run_of(tools=("a-very-special-tool",)))
    headers = {"Content-Type": PROTOBUF, "Authorization": "Bearer sesame-open"}
    taken = ask(f"{served.http}/v1/traces", body=body, headers=headers)
    refused = ask(f"{served.http}/v1/traces", body=b"\xff a-very-special-tool", headers=headers)
    served.stop()
    said = served.log.read_text()

    assert (taken.status, refused.status) == (200, 400)
    assert "special" not in said
    assert "sesame" not in said


def test_what_is_wrong_ends_it_with_2_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "service.yaml"
    file.write_text("service: {http: 0.0.0.0:4318}\n")
    for check in ((), ("--check",)):
        done = call(capsys, "serve", *check, "--config", file)

        assert done.code == 2
        assert done.out == ""
        assert done.err.startswith("otel-reliability: service.http: '0.0.0.0:4318' is not safe")
        assert len(done.err.splitlines()) == 1


def test_an_address_that_is_taken_ends_it_with_2(serve: Services) -> None:
    first = serve()
    with pytest.raises(Died, match=r"service\.grpc: .* is not an address to be had here"):
        serve("--grpc", first.grpc)

    assert send_run(first) == 200


def test_settings_that_are_right_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "service.yaml"
    file.write_text(
        "service: {http: 0.0.0.0:4318, allow_public: true}\nwindows: [{name: day, period: 24h}]\n"
    )
    done = call(
        capsys, "serve", "--check", "--config", file, "--set", "change.runs_per_false_alarm=5000"
    )

    assert (done.code, done.err) == (0, "")
    assert "0.0.0.0:4318, other machines too" in done.out
    assert "day (86400 s)" in done.out
    assert "one in 50 days" in done.out
