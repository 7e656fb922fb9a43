from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.otlp import traces_protobuf
from tests.real.ports import HOST, free_port
from tests.real.waiting import until
from tests.service.running import Running, lone_agent, runs_of, serving


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving({"metrics": {"min_runs": 2}}) as found:
        paths = (("search", "book"), ("search", "book"), ("search", "pay"), ("search",))
        for number, path in enumerate(paths, start=1):
            found.post("traces", traces_protobuf(runs_of(2, path, "support", first=10 * number)))
        agents = [("clerk", "prod"), ("clerk", "test"), ("a/b ü?", "")]
        found.send(
            lone_agent(name, trace, environment)
            for trace, (name, environment) in enumerate(agents, start=200)
        )
        yield found


def answer_of(running: Running, path: str) -> Any:
    answer = running.get("ui", path)
    assert (answer.status, answer.headers["Content-Type"]) == (
        200,
        "application/json; charset=utf-8",
    )
    return json.loads(answer.body)


def test_all_agents_are_listed_with_their_score(running: Running) -> None:
    found = answer_of(running, "/api/v1/agents")
    support = next(one for one in found["agents"] if one["agent"] == "support")

    assert found["total"] == 4
    assert (support["service"], support["environment"], support["runs"]) == ("shop", "test", 8)
    assert support["tier"] in {"STABLE", "VARIABLE", "UNSTABLE", "CRITICAL"}
    assert support["last_run"].startswith("2023-11-14T22:")
    assert (support["changed"], support["flags"]) == (None, [])
    assert support["largest_penalty"] is None or support["largest_penalty"]["points"] >= 1
    assert all(0 <= score <= 100 for score in support["score_history"])


def test_the_list_comes_in_pages(running: Running) -> None:
    whole = [one["agent"] for one in answer_of(running, "/api/v1/agents")["agents"]]
    parts = [
        answer_of(running, f"/api/v1/agents?limit=3&offset={at}")["agents"] for at in (0, 3, 6)
    ]

    assert [[one["agent"] for one in part] for part in parts] == [whole[:3], whole[3:], []]


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=x", "offset=1.5", "limit=99999999999999999999"]
)
def test_a_page_that_cannot_be_is_a_bad_request(running: Running, query: str) -> None:
    answer = running.get("ui", f"/api/v1/agents?{query}")

    assert answer.status == 400
    assert "whole number" in json.loads(answer.body)["message"]


def test_one_agent_tells_readings_runs_and_where_paths_part(running: Running) -> None:
    (support,) = answer_of(running, "/api/v1/agents/shop/support")["agents"]
    shown = float(
        next(
            line.rpartition(" ")[2]
            for line in _lines(running, "agent_reliability_path_entropy{", "support")
        )
    )

    assert support["metrics"]["path_entropy"]["value"] == shown
    assert support["metrics"]["path_entropy"]["runs"] == 8
    assert (
        support["metrics"]["path_entropy"]["low"]
        <= shown
        <= support["metrics"]["path_entropy"]["high"]
    )
    assert len(support["recent_runs"]) == 8
    assert {tuple(one["path"]) for one in support["recent_runs"]} == {
        ("search", "book"),
        ("search", "pay"),
        ("search",),
    }
    assert all(0 <= one["path_distance"] <= 1 for one in support["recent_runs"])
    assert support["findings"]["divergences"][0]["shared"] == ["search"]
    assert support["change"] == {
        "state": "learning",
        "sentence": "Collecting a baseline: 52 more observations.",
        "changes": [],
    }


def _lines(running: Running, start: str, agent: str) -> list[str]:
    text = running.metrics().splitlines()
    return [line for line in text if line.startswith(start) and f'agent_name="{agent}"' in line]


def test_an_agent_of_several_environments_is_told_for_each(running: Running) -> None:
    both = answer_of(running, "/api/v1/agents/bank/clerk")["agents"]
    one = answer_of(running, "/api/v1/agents/bank/clerk?environment=prod")["agents"]

    assert {each["environment"] for each in both} == {"prod", "test"}
    assert [each["environment"] for each in one] == ["prod"]


def test_any_name_can_be_asked_for(running: Running) -> None:
    (found,) = answer_of(running, f"/api/v1/agents/bank/{quote('a/b ü?', safe='')}")["agents"]

    assert found["agent"] == "a/b ü?"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/agents/shop/nobody",
        "/api/v1/agents/nowhere/support",
        "/api/v1/agents/bank/clerk?namespace=x",
    ],
)
def test_an_agent_that_nobody_knows_is_not_found(running: Running, path: str) -> None:
    answer = running.get("ui", path)

    assert answer.status == 404
    assert json.loads(answer.body)["code"] == 12


def test_probes_tell_whether_it_lives_and_whether_it_takes_requests(running: Running) -> None:
    readiness = running.service.readiness
    ready = running.get("ui", "/readyz")
    readiness.hold("test", "for a while")
    not_ready = running.get("ui", "/readyz")
    alive = running.get("ui", "/healthz")
    refused = running.post("traces", b"")
    readiness.release("test")

    assert (ready.status, json.loads(ready.body)) == (200, {"ready": True, "reasons": {}})
    assert (not_ready.status, json.loads(not_ready.body)["reasons"]) == (
        503,
        {"test": "for a while"},
    )
    assert alive.status == 200
    assert (refused.status, refused.headers["Retry-After"]) == (503, "5")


def test_a_writer_that_is_stuck_is_not_healthy() -> None:
    with serving() as running:
        running.service.writer.stop(5)
        until(lambda: not running.service.writer.alive, "the writer to end")

        assert running.get("ui", "/healthz").status == 503


@pytest.mark.parametrize("openmetrics", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_metrics_come_as_they_are_asked_for(
    running: Running, openmetrics: bool, packed: bool
) -> None:
    accept = "application/openmetrics-text; version=1.0.0" if openmetrics else "text/plain"
    answer = running.get(
        "metrics", "/metrics", accept=accept, **({"accept_encoding": "gzip"} if packed else {})
    )
    text = (gzip.decompress(answer.body) if packed else answer.body).decode()

    assert answer.headers["Content-Encoding"] == ("gzip" if packed else None)
    assert answer.headers["Content-Type"].startswith(
        "application/openmetrics-text" if openmetrics else "text/plain"
    )
    assert text.endswith("# EOF\n") is openmetrics
    assert "agent_reliability_score{" in text


def test_doors_may_share_an_address() -> None:
    shared = f"{HOST}:{free_port()}"
    with serving(metrics=shared, ui=shared) as running:
        assert running.service.addresses["metrics"] == running.service.addresses["ui"]
        assert running.get("ui", "/metrics").status == 200
        assert running.get("metrics", "/readyz").status == 200


def test_a_door_may_be_closed() -> None:
    with serving(grpc="off", ui="off") as running:
        assert set(running.service.addresses) == {"http", "metrics"}
        assert running.get("metrics", "/metrics").status == 200
        assert running.get("metrics", "/api/v1/agents").status == 404
