"""A page of another origin that has its name point to this machine reads and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from otel_reliability.sources.otlp_write import traces_json
from tests.real.web import ask
from tests.service.running import JSON, PROTOBUF, Running, body_of, run_of, serving

EVIL = "evil.example.com:8080"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    settings = {"ui": {"hosts": ["obs.example.com"], "url": "https://agents.example.com/x"}}
    with serving(settings) as found:
        yield found


@pytest.mark.parametrize("path", ["/", "/api/v1/agents", "/alerts", "/agents/shop/a", "/static/x"])
def test_page_under_a_foreign_name_is_refused_and_counted(running: Running, path: str) -> None:
    before = running.service.intake.requests["", "http", "host"]

    answer = running.get("ui", path, Host=EVIL)

    assert answer.status == 421
    assert "ui.hosts" in answer.text
    assert running.service.intake.requests["", "http", "host"] == before + 1


def test_acknowledgement_under_a_foreign_name_is_refused(running: Running) -> None:
    headers = {"Host": EVIL, "Origin": f"http://{EVIL}"}
    url = running.url("ui", "/agents/shop/support/acknowledge")

    assert ask(url, body=b"", headers=headers).status == 421


def test_browser_under_a_foreign_name_sends_no_spans(running: Running) -> None:
    body = json.dumps(traces_json(run_of())).encode()

    assert running.post("traces", body, JSON, Host=EVIL, Origin=f"http://{EVIL}").status == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]:8080",
        "10.0.0.7:8080",
        "localhost:8080",
        "otel-reliability",
        "reliability.monitoring.svc.cluster.local",
        "obs.example.com",
        "OBS.example.com:443",
        "agents.example.com",
    ],
)
def test_names_of_the_service_are_served(running: Running, host: str) -> None:
    assert running.get("ui", "/api/v1/agents", Host=host).status == 200


def test_programs_use_any_name(running: Running) -> None:
    assert running.post("traces", body_of(run_of()), PROTOBUF, Host=EVIL).status == 200
    assert running.get("metrics", "/metrics", Host=EVIL).status == 200
    assert running.get("ui", "/readyz", Host=EVIL).status == 200


def test_with_a_token_any_name_is_served() -> None:
    with serving(token="secret") as running:
        answer = running.get("ui", "/", Host=EVIL, Authorization="Bearer secret")

    assert answer.status == 200
