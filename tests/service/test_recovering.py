"""While state is brought back every door says so, nothing half true is told, and nobody takes the
process for a dead one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import grpc
import pytest

from otel_reliability.service.writer import STUCK_CHECKS
from tests.real.waiting import until
from tests.service.running import HEALTH, Controlled, Running, body_of, run_of, serving

NOT_SERVING = b"\x08\x02"
SERVING = b"\x08\x01"


@pytest.fixture
def journal() -> Controlled:
    """State that is read until a test says that it is done."""
    found = Controlled()
    found.may_restore.clear()
    found.may_commit.set()
    return found


@pytest.fixture
def recovering(journal: Controlled) -> Iterator[Running]:
    with serving(persistence_of=journal, wait=False) as found:
        try:
            yield found
        finally:
            journal.may_restore.set()


def done(running: Running, journal: Controlled) -> None:
    journal.may_restore.set()
    until(lambda: not running.service.readiness.reasons, "the service to be ready")


def test_it_says_why_it_is_not_ready_and_is_healthy(
    recovering: Running, journal: Controlled
) -> None:
    """The one keeps senders away, the other keeps whoever watches the process from ending it,
    however long it takes.
    """
    for _ in range(2 * STUCK_CHECKS):
        recovering.service.progress.check()
    recovering.clock.advance(10_000.0)
    ready = recovering.get("ui", "/readyz")
    health = recovering.get("ui", "/healthz")
    assert (ready.status, health.status) == (503, 200)
    assert json.loads(ready.body) == {
        "ready": False,
        "reasons": {"recovering": "state is being loaded; retry later"},
    }

    done(recovering, journal)
    assert json.loads(recovering.get("ui", "/readyz").body) == {"ready": True, "reasons": {}}


def test_requests_are_to_come_again(recovering: Running, journal: Controlled) -> None:
    body = body_of(run_of())
    answer = recovering.post("traces", body)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    with pytest.raises(grpc.RpcError) as refused:
        recovering.call(body)
    error = cast("Any", refused.value)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert {"google.rpc.retryinfo-bin", "grpc-status-details-bin"} <= {
        key for key, _ in error.trailing_metadata()
    }
    assert recovering.call(b"", HEALTH) == NOT_SERVING

    done(recovering, journal)
    assert recovering.post("traces", body).status == 200
    assert recovering.call(body) == b""
    assert recovering.call(b"", HEALTH) == SERVING
    recovering.finalize()
    assert recovering.sum("agent_reliability_runs_total") == 1


@pytest.mark.parametrize("path", ["/api/v1/agents", "/api/v1/agents/shop/support"])
def test_the_api_says_that_it_does_not_know_yet(
    path: str, recovering: Running, journal: Controlled
) -> None:
    """In JSON, with when to come again: an empty list, or an agent without runs, would be a lie."""
    answer = recovering.get("ui", path)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert answer.headers["Content-Type"].startswith("application/json")
    assert "being loaded" in json.loads(answer.body)["message"]

    done(recovering, journal)
    recovering.send(run_of())
    assert recovering.get("ui", path).status == 200


def test_no_number_is_told(recovering: Running, journal: Controlled) -> None:
    """Half of a counter would look like one that began anew."""
    answer = recovering.get("metrics", "/metrics")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")

    done(recovering, journal)
    assert recovering.get("metrics", "/metrics").status == 200
