"""Input from people who mean harm, and from programs that are broken: nothing crashes, grows or
gets mixed up.
"""

from __future__ import annotations

import gc
import json
import socket
import tracemalloc
from collections import Counter
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.service.answers import Problem, Refused
from otel_reliability.service.health import resident
from otel_reliability.telemetry.guard import Guard
from otel_reliability.testing import span
from tests.otlp import traces_protobuf
from tests.real.waiting import until
from tests.service.hostile import Case, cases
from tests.service.running import JSON, PROTOBUF, Running, body_of, run_of, serving

MEGABYTE = 1024 * 1024
LIMITS: dict[str, Any] = {"max_request": 2 * MEGABYTE, "queue": 16 * MEGABYTE}
CONTROL = ("first", "second", "third")
EXPECTED = {Problem.UNDECODABLE, Problem.TOO_LARGE}


def taken(running: Running, case: Case) -> Problem | None:
    """Hand a request in as a door would, and wait for it; None: it was taken."""
    intake = running.service.intake
    try:
        intake.admit(len(case.body))
        with intake.budget.reserve(len(case.body)) as place:
            intake.submit(
                case.signal, case.encoding, case.body, place, compression=case.compression
            ).result(30)
    except Refused as refusal:
        return refusal.problem
    return None


def held_up(running: Running, number: int, seed: int) -> Counter[Problem | None]:
    """Send so many bad requests, and between them the spans of one good run each hundred, in
    pieces.
    """
    found: Counter[Problem | None] = Counter()
    good = 0
    for at, case in enumerate(cases(seed, number)):
        found[taken(running, case)] += 1
        if at % 100 == 50:
            good += 1
            for one in run_of(10_000 + good, CONTROL, "control", 5.0 * good):
                running.call(body_of([one]))
    running.finalize()
    assert running.sum("agent_reliability_runs_total", gen_ai_agent_name="control") == good
    for tool in CONTROL:
        assert (
            running.sum(
                "agent_reliability_tool_calls_total",
                gen_ai_agent_name="control",
                gen_ai_tool_name=tool,
            )
            == good
        )
    assert running.sum("agent_reliability_path_entropy", gen_ai_agent_name="control") == 0
    return found


def unharmed(running: Running) -> None:
    """Nothing is held any more, nothing failed, and the service takes requests."""
    assert (running.service.intake.budget.used, running.service.intake.budget.held) == (0, 0)
    assert running.service.healthy()
    assert not running.service.readiness.reasons
    assert running.post("traces", b"").status == 200


@pytest.fixture(autouse=True)
def no_fault() -> object:
    """Whatever comes, none of our own errors is behind an answer."""
    before = Guard.faults.copy()
    loud = Guard.loud
    Guard.loud = False
    yield
    Guard.loud = loud
    assert Guard.faults == before


@pytest.mark.parametrize("seed", [1, 2])
def test_bad_requests_harm_nobody(seed: int) -> None:
    with serving(**LIMITS) as running:
        found = held_up(running, 1_200, seed)

        assert set(found) == {None, *EXPECTED}
        assert min(found.values()) > 5
        unharmed(running)


@pytest.mark.soak
def test_a_hundred_thousand_bad_requests_harm_nobody() -> None:
    with serving(**LIMITS) as running:
        held_up(running, 5_000, 3)
        before = resident()
        for seed in range(4, 24):
            found = cases(seed, 5_000)
            assert {taken(running, case) for case in found} <= {None, *EXPECTED}
            running.finalize()
        gc.collect()

        assert resident() - before < 100 * MEGABYTE
        unharmed(running)


@pytest.mark.parametrize("seed", [1])
def test_bad_requests_over_the_wire_are_counted(seed: int) -> None:
    with serving(**LIMITS) as running:
        statuses: Counter[int] = Counter()
        for case in cases(seed, 300):
            coding = "identity" if case.compression is None else case.compression.name
            statuses[
                running.post(
                    case.signal.value, case.body, case.encoding.value, content_encoding=coding
                ).status
            ] += 1
        counted = running.service.intake.requests
        outcomes: Counter[str] = Counter()
        for (_, _, outcome), number in counted.items():
            outcomes[outcome] += number

        assert set(statuses) <= {200, 400, 413}
        assert sum(statuses.values()) == sum(outcomes.values()) == 300
        assert statuses[200] == outcomes["accepted"] + outcomes["partial"] + outcomes["discarded"]
        assert statuses[413] == outcomes["too_large"]
        unharmed(running)


HTTP = (
    b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: "
    b"application/x-protobuf\r\nContent-Length: 10\r\n\r\n0123456789"
)
SMUGGLED = (
    (
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
        b"chunked\r\n\r\n0\r\n\r\n"
    ),
    b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    (
        b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
        b"chunked\r\n\r\nffffffffffffffffff\r\n"
    ),
    b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000,
    b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\r\n" * 1_000,
    b"\0" * 1_000,
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


def send_raw(running: Running, door: str, sent: bytes) -> bytes:
    """Bytes on a connection of their own, which is then closed; what came back at once."""
    place = running.service.addresses[door]
    with socket.create_connection((place.host, place.port), timeout=5) as client:
        client.settimeout(0.02)
        try:
            client.sendall(sent)
            return client.recv(4_096)
        except OSError:
            return b""


def damaged(random: Random, sent: bytes) -> bytes:
    """A few bytes changed, or the end cut off."""
    found = bytearray(sent)
    for _ in range(random.randint(1, 8)):
        found[random.randrange(len(found))] = random.randrange(256)
    return bytes(found[: random.randint(1, len(found))] if random.random() < 0.3 else found)


def test_broken_http_harms_nobody() -> None:
    random = Random(5)
    with serving(**LIMITS) as running:
        for sent in (*SMUGGLED, *(damaged(random, HTTP) for _ in range(60))):
            for door in ("http", "metrics"):
                said = send_raw(running, door, sent)
                assert not said or said.startswith(b"HTTP/1."), said[:80]
        held_up(running, 60, 6)
        unharmed(running)


def test_broken_http2_harms_nobody() -> None:
    random = Random(6)
    with serving(**LIMITS) as running:
        for _ in range(60):
            frames = b"".join(
                random.randrange(200).to_bytes(3)
                + bytes((random.randrange(12), random.randrange(256)))
                + random.randrange(9).to_bytes(4)
                + random.randbytes(random.randrange(60))
                for _ in range(random.randint(1, 10))
            )
            send_raw(
                running,
                "grpc",
                random.choice([PREFACE + frames, damaged(random, PREFACE + frames), frames]),
            )
        held_up(running, 60, 7)
        unharmed(running)


def test_a_client_that_stops_in_the_middle_holds_nothing() -> None:
    with serving(**LIMITS) as running:
        for _ in range(20):
            send_raw(
                running, "http", HTTP.replace(b"Content-Length: 10", b"Content-Length: 1000000")
            )
        running.post("traces", b"")
        unharmed(running)


@pytest.mark.parametrize("where", ["attribute", "name", "resource", "event"])
def test_a_huge_value_is_not_kept(where: str) -> None:
    huge = "x" * (8 * MEGABYTE)
    root, tool = run_of()
    tool = {
        "attribute": replace(tool, attributes={**tool.attributes, "gen_ai.tool.call.result": huge}),
        "name": replace(tool, name=huge),
        "resource": replace(
            tool,
            resource=replace(
                tool.resource, attributes={"service.name": "shop", "x": "y" * 900_000}
            ),
        ),
        "event": replace(tool, events=span(1, events=[("x", {"x": huge})]).events),
    }[where]
    body = traces_protobuf([root, tool])
    with serving(max_request=32 * MEGABYTE, queue=64 * MEGABYTE) as running:
        running.post("traces", traces_protobuf(run_of(2)))
        gc.collect()
        tracemalloc.start()
        try:
            status = running.post("traces", body).status
            until(
                lambda: _traced() < 2 * MEGABYTE,
                "the value to be let go of: its answer comes before its request ends",
            )
        finally:
            tracemalloc.stop()

        assert status == 200
        assert running.service.engine.open_runs == 2
        unharmed(running)


def test_an_attribute_of_a_hundred_megabytes_is_refused() -> None:
    with serving() as running:
        answer = running.post(
            "traces", b'{"resourceSpans": "' + b"x" * (100 * MEGABYTE) + b'"}', JSON
        )

        assert answer.status == 413
        unharmed(running)


@pytest.mark.parametrize(
    "number", [2_000, pytest.param(1_000_000, marks=pytest.mark.soak)], ids=["short", "a million"]
)
def test_no_end_of_names_is_an_end_of_series(number: int) -> None:
    limits = {"agents": 50, "tools": 10, "sessions": 100}
    with serving({"limits": limits}) as running:
        for first in range(0, number, 500):
            spans = [
                replace(
                    one, attributes={**one.attributes, "gen_ai.conversation.id": f"session-{at}"}
                )
                for at in range(first, first + 500)
                for one in run_of(1 + at, (f"tool-{at}",), f"agent-{at if at % 2 else 'same'}")
            ]
            assert running.post("traces", body_of(spans)).status == 200
            if first % 10_000 == 0:
                running.finalize()
        running.finalize()
        text = running.metrics()
        agents = {
            line.partition('agent_name="')[2].partition('"')[0]
            for line in text.splitlines()
            if "agent_name=" in line
        }

        assert len(agents) == 51
        assert "__other__" in agents
        assert running.sum("agent_reliability_runs_total") == number
        assert running.sum("agent_reliability_tool_calls_total") == number
        assert running.sum("otel_reliability_limit_hits_total", limit="agents") > 0
        assert text.count('gen_ai_agent_name="agent-same",gen_ai_tool_name=') <= 11
        assert len(running.service.engine.sessions) <= 100
        unharmed(running)


def test_json_from_hell_is_answered() -> None:
    with serving(**LIMITS) as running:
        for body in (
            b"[" * 1_000_000,
            b'{"a":' * 200_000,
            b'{"resourceSpans":[' + b"[" * 100_000,
            b"1" * 1_000_000,
            b'"' + b"\\" * 999_999 + b'"',
            b'{"resourceSpans":' + b"1" * 5_000 + b"}",
            json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{}] * 20_000}]}]}).encode(),
            b'{"resourceSpans":null,"resourceSpans":{"a":NaN}}',
        ):
            assert running.post("traces", body, JSON).status in {200, 400}
        assert running.post("traces", b"", PROTOBUF).status == 200
        unharmed(running)


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
