"""An agent is removed with everything that is kept of it, for good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_reliability.testing import FakeClock
from tests.real.web import Answer, ask
from tests.service.running import Running, body_of, lone_agent, run_of, runs_of, serving

TOKEN = "a-token-of-32-characters-or-more"
SUPPORT = "/api/v1/agents/shop/support"


def remove(running: Running, path: str, **headers: str) -> Answer:
    return ask(running.url("ui", path), method="DELETE", headers=headers)


def names(running: Running) -> list[str]:
    listed = json.loads(running.get("ui", "/api/v1/agents").text)["agents"]
    return [f"{one['agent']} {one['environment']}" for one in listed]


@pytest.fixture(name="running", params=["memory", "state"])
def running_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    state = str(tmp_path) if request.param == "state" else None
    with serving({"metrics": {"min_runs": 2}}, state=state) as running:
        running.send(runs_of(6, ("search", "book")))
        running.send([lone_agent("clerk", 200, "prod"), lone_agent("clerk", 201, "test")])
        yield running


def test_an_agent_is_gone_from_lists_pages_and_series(running: Running) -> None:
    answer = remove(running, SUPPORT)
    running.clock.advance(60.0)
    running.writer_came_round()

    assert (answer.status, json.loads(answer.text)) == (200, {"removed": 1})
    assert names(running) == ["clerk prod", "clerk test"]
    assert running.get("ui", SUPPORT).status == 404
    assert running.get("ui", "/agents/shop/support").status == 404
    assert remove(running, SUPPORT).status == 404
    assert 'gen_ai_agent_name="support"' not in running.metrics()


def test_the_query_chooses_among_agents_of_one_name(running: Running) -> None:
    answer = remove(running, "/api/v1/agents/bank/clerk?environment=prod")

    assert json.loads(answer.text) == {"removed": 1}
    assert names(running) == ["support test", "clerk test"]


def test_a_later_run_makes_it_again_with_nothing_of_before(running: Running) -> None:
    remove(running, SUPPORT)
    running.send(run_of(300, ("look",), start=9_000.0))
    [agent] = json.loads(running.get("ui", SUPPORT).text)["agents"]
    runs = json.loads(running.get("ui", f"{SUPPORT}/runs").text)["runs"]

    assert agent["runs"] == 1
    assert [run["path"] for run in runs] == [["look"]]


def test_a_removed_agent_does_not_come_back_with_a_restart(tmp_path: Path) -> None:
    """Neither do its runs that had closed and were not final yet."""
    clock = FakeClock(100_000.0)
    with serving(state=str(tmp_path), clock=clock) as running:
        running.send(runs_of(6, ("search", "book")))
        running.post("traces", body_of(run_of(50, start=800.0)))
        clock.advance(10.0)
        running.writer_came_round()
        remove(running, SUPPORT)
        running.finalize()
    with serving(state=str(tmp_path), clock=clock) as running:
        running.finalize()
        assert names(running) == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "evil.example.com"}, 421), ({"Origin": "http://evil.example.com"}, 403)],
)
def test_pages_of_others_remove_nothing(
    running: Running, headers: dict[str, str], status: int
) -> None:
    assert remove(running, SUPPORT, **headers).status == status
    assert "support test" in names(running)


def test_removal_needs_the_token() -> None:
    with serving(token=TOKEN) as running:
        assert remove(running, SUPPORT).status == 401
        assert remove(running, SUPPORT, Authorization=f"Bearer {TOKEN}").status == 404
