"""Outcomes that come late reach runs of a running service, over HTTP and as log events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.testing import span, span_id, trace_id
from tests.real.web import Answer, ask
from tests.service.running import JSON, Running, serving

TOKEN = "a-token-of-32-characters-or-more"
PATH = "/api/v1/outcomes"
MAPPED = {"mapping": {"outcome_key": ["ticket"]}, "metrics": {"min_runs": 2}, "hash_key": "00" * 16}


def send_runs(running: Running, *numbers: int) -> None:
    spans = [
        span(
            1,
            trace=number,
            start=10.0 * number,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "desk",
                "gen_ai.conversation.id": f"chat-{number}",
                "ticket": f"T-{number}",
            },
        )
        for number in numbers
    ]
    running.send(spans)


def report(running: Running, body: object, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(
        running.url("ui", PATH),
        body=json.dumps(body).encode(),
        headers={"Content-Type": JSON, **named},
    )


def agent_of(running: Running) -> dict[str, Any]:
    [found] = json.loads(running.get("ui", "/api/v1/agents/shop/desk").text)["agents"]
    return found


@pytest.fixture(name="running", params=["memory", "state"])
def running_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    kept: dict[str, Any] = {} if request.param == "memory" else {"state": str(tmp_path / "s")}
    with serving(MAPPED, **kept) as running:
        yield running


def test_every_subject_reaches_a_final_run(running: Running) -> None:
    send_runs(running, 1, 2, 3, 4, 5)
    running.finalize()  # assembly has forgotten them
    answer = report(
        running,
        {
            "outcomes": [
                {"trace_id": trace_id(1).hex(), "success": False},
                {"run_id": f"{trace_id(2).hex()}-{span_id(1).hex()}", "success": "passed"},
                {"session_id": "chat-3", "success": True, "time": "2030-01-01T00:00Z"},
                {"key": "T-4", "success": 1},
                {"key": "T-99", "success": True},
            ]
        },
    )

    assert answer.status == 200
    assert json.loads(answer.text) == {
        "reached": 4,
        "unknown": 1,
        "outcomes": [*[{"state": "reached", "runs": 1}] * 4, {"state": "unknown", "runs": 0}],
    }
    running.finalize()
    agent = agent_of(running)
    assert agent["success_rate"] == 0.75
    assert agent["metrics"]["success_rate"]["runs"] == 4
    assert [run["outcome"] for run in agent["recent_runs"]].count("success") == 3
    late = "agent_reliability_run_late_outcomes_total"
    assert running.sum(late, outcome="success") == 3.0
    assert running.sum(late, outcome="failure") == 1.0
    assert running.sum("agent_reliability_runs_total") == 5.0
    assert running.sum("agent_reliability_runs_total", outcome="completed") == 5.0
    again = json.loads(report(running, {"key": "T-4", "success": True}).text)
    assert again["reached"] == 1
    running.finalize()
    assert running.sum(late) == 4.0


def test_outcome_that_comes_first_waits_for_its_run(running: Running) -> None:
    answer = json.loads(report(running, {"key": "T-1", "success": True}).text)
    assert answer["outcomes"] == [{"state": "unknown", "runs": 0}]
    send_runs(running, 1)

    assert agent_of(running)["success_rate"] == 1.0
    assert running.sum("agent_reliability_runs_total", outcome="success") == 1.0
    assert running.sum("agent_reliability_run_late_outcomes_total") == 0.0


@pytest.mark.parametrize("by", ["attributes", "context"])
def test_log_event_reports_an_outcome(running: Running, by: str) -> None:
    """What attributes name comes before the trace that the event was written in."""
    send_runs(running, 1, 2)
    named = {"reliability.outcome.key": "T-1"} if by == "attributes" else {}
    context = trace_id(2 if by == "attributes" else 1)
    attributes = {"reliability.run.success": "true", **named}
    record = {
        "eventName": "reliability.outcome",
        "timeUnixNano": str(2 * 10**18),
        "traceId": context.hex(),
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
        ],
    }
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    assert running.post("logs", json.dumps(body).encode(), JSON).status == 200
    running.finalize()

    outcomes = {run["trace_id"]: run["outcome"] for run in agent_of(running)["recent_runs"]}
    assert outcomes == {trace_id(1).hex(): "success", trace_id(2).hex(): "completed"}


def test_malformed_log_event_is_rejected_by_name(running: Running) -> None:
    record = {"eventName": "reliability.outcome", "timeUnixNano": "1"}
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    answer = running.post("logs", json.dumps(body).encode(), JSON)

    assert "an outcome: give one of" in answer.text


def test_outcome_outlives_a_restart(tmp_path: Path) -> None:
    """Also of a run that only the state holds: the window has 2 runs."""
    narrow = {**MAPPED, "windows": [{"last": 2}]}
    with serving(narrow, state=str(tmp_path)) as running:
        send_runs(running, 1, 2, 3)
        running.finalize()
        clock = running.clock
    with serving(narrow, state=str(tmp_path), clock=clock) as running:
        old = report(running, {"trace_id": trace_id(1).hex(), "success": False})
        new = report(running, {"key": "T-3", "success": True})
        assert json.loads(old.text)["reached"] == 1
        running.finalize()
        assert new.status == 200
        clock = running.clock
    with serving(narrow, state=str(tmp_path), clock=clock) as running:
        agent = agent_of(running)
        runs = json.loads(running.get("ui", "/api/v1/agents/shop/desk/runs").text)["runs"]

        assert agent["success_rate"] == 1.0
        assert {run["trace_id"]: run["outcome"] for run in runs} == {
            trace_id(1).hex(): "failure",
            trace_id(2).hex(): "completed",
            trace_id(3).hex(): "success",
        }
        assert running.sum("agent_reliability_run_late_outcomes_total") == 2.0


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ([], 400, "send an object"),
        ({"outcomes": {}}, 400, "send an object"),
        (
            {"outcomes": [{"key": "T-1", "success": True}, {"key": "T-2"}]},
            400,
            "outcome 1: success",
        ),
        ({"success": True}, 400, "outcome 0: give one of"),
    ],
)
def test_requests_that_cannot_be_read_change_nothing(
    running: Running, body: object, status: int, why: str
) -> None:
    send_runs(running, 1)
    answer = report(running, body)

    assert (answer.status, why in answer.text) == (status, True)
    assert agent_of(running)["success_rate"] is None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example.com"}, 421),
        ({"Origin": "http://evil.example.com"}, 403),
        ({"Content_Type": "text/plain"}, 415),
    ],
)
def test_pages_of_others_cannot_report(
    running: Running, headers: Mapping[str, str], status: int
) -> None:
    send_runs(running, 1)
    answer = report(running, {"key": "T-1", "success": True}, **headers)

    assert answer.status == status
    assert agent_of(running)["success_rate"] is None


def test_reports_need_the_token() -> None:
    with serving(MAPPED, token=TOKEN) as running:
        outcome = {"key": "T-1", "success": True}
        assert report(running, outcome).status == 401
        assert report(running, outcome, Authorization=f"Bearer {TOKEN}").status == 200


def test_no_key_is_kept(tmp_path: Path) -> None:
    with serving(MAPPED, state=str(tmp_path)) as running:
        send_runs(running, 1)
        report(running, {"key": "T-secret", "success": True})
        running.finalize()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())

    assert b"T-1" not in kept
    assert b"T-secret" not in kept
