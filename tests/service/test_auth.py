from __future__ import annotations

import ssl
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from otel_reliability.service.auth import AccessTokens
from tests.real.web import ask
from tests.service.certificates import Authority, Pair
from tests.service.running import EXPORT_TRACES, HEALTH, PROTOBUF, Running, serving

TOKEN = "a-token-of-32-characters-or-more"
DOORS = {
    "traces": ("http", "/v1/traces", b""),
    "logs": ("http", "/v1/logs", b""),
    "discarded": ("http", "/v1/metrics", b""),
    "unknown signal": ("http", "/v1/profiles", b""),
    "metrics": ("metrics", "/metrics", None),
    "agents": ("ui", "/api/v1/agents", None),
    "one agent": ("ui", "/api/v1/agents/shop/support", None),
    "unknown page": ("ui", "/nothing", None),
}
PROBES = {"health": "/healthz", "ready": "/readyz"}
WRONG = {
    "none": {},
    "another": {"Authorization": "Bearer another-token-of-the-same-length"},
    "empty": {"Authorization": "Bearer "},
    "longer": {"Authorization": f"Bearer {TOKEN}x"},
    "a part": {"Authorization": f"Bearer {TOKEN[:-1]}"},
    "another scheme": {"Authorization": f"Basic {TOKEN}"},
    "bare": {"Authorization": TOKEN},
    "not ASCII": {"Authorization": "Bearer \xe9"},
    "another header": {"X-Token": TOKEN},
}


def asked(
    running: Running,
    door: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    context: ssl.SSLContext | None = None,
) -> int:
    """The status of an answer, over TLS where there is a context."""
    url = running.url(door, path, scheme="http" if context is None else "https")
    return ask(
        url, body=body, headers={"Content-Type": PROTOBUF, **headers}, context=context
    ).status


def called(
    running: Running, method: str = EXPORT_TRACES, credentials: Any = None, **headers: str
) -> grpc.StatusCode:
    library = cast("Any", grpc)
    channel = (
        library.insecure_channel(running.target)
        if credentials is None
        else library.secure_channel(running.target, credentials)
    )
    with channel:
        try:
            channel.unary_unary(method)(b"", timeout=60, metadata=tuple(headers.items()))
        except grpc.RpcError as error:
            return cast("Any", error).code()
    return grpc.StatusCode.OK


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(token=TOKEN) as found:
        yield found


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("wrong", WRONG)
def test_no_door_opens_without(running: Running, door: str, wrong: str) -> None:
    assert asked(running, *DOORS[door], WRONG[wrong]) == 401


@pytest.mark.parametrize("door", ["traces", "logs", "metrics", "agents"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_every_door_opens_with(running: Running, door: str, scheme: str) -> None:
    assert asked(running, *DOORS[door], {"Authorization": f"{scheme} {TOKEN}"}) == 200


@pytest.mark.parametrize("probe", PROBES)
def test_probes_need_none(running: Running, probe: str) -> None:
    """Whoever restarts us knows no token."""
    assert asked(running, "ui", PROBES[probe], None, {}) == 200


@pytest.mark.parametrize("authorization", ["", f"Basic {TOKEN}", "Bearer another", TOKEN])
def test_grpc_does_not_open_without(running: Running, authorization: str) -> None:
    headers = {"authorization": authorization} if authorization else {}

    assert called(running, **headers) is grpc.StatusCode.UNAUTHENTICATED


def test_grpc_opens_with(running: Running) -> None:
    assert called(running, authorization=f"Bearer {TOKEN}") is grpc.StatusCode.OK
    assert called(running, HEALTH) is grpc.StatusCode.OK


def test_refusals_are_counted(running: Running) -> None:
    before = running.service.intake.requests.copy()
    called(running)
    asked(running, *DOORS["metrics"], {})
    new = running.service.intake.requests - before

    assert new == {("traces", "grpc", "unauthenticated"): 1, ("", "http", "unauthenticated"): 1}


def test_any_line_lets_in_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """A new token is added before the old one is taken away: nobody is locked out in between."""
    file = tmp_path / "tokens"
    file.write_text("old\n")
    tokens = AccessTokens(file=str(file))
    seen = [tokens.allow("Bearer old"), tokens.allow("Bearer new")]
    file.write_text("old\nnew\n")
    seen += [tokens.allow("Bearer old"), tokens.allow("Bearer new")]
    file.write_text("new-er\n")
    seen += [tokens.allow("Bearer old"), tokens.allow("Bearer new-er")]

    assert seen == [True, False, True, True, False, True]


def test_a_file_that_goes_away_lets_nobody_else_in(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("secret")
    tokens = AccessTokens(file=str(file))
    tokens.allow("Bearer secret")
    file.unlink()

    assert tokens.allow("Bearer secret")
    assert not tokens.allow("Bearer other")
    assert not AccessTokens(file=str(file)).allow("Bearer secret")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"), "theirs")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Pair:
    return authority.issue("server")


@pytest.fixture(scope="module")
def encrypted(server: Pair) -> Iterator[Running]:
    with serving(tls={"certificate": str(server.certificate), "key": str(server.key)}) as found:
        yield found


@pytest.fixture(scope="module")
def mutual(server: Pair, authority: Authority) -> Iterator[Running]:
    tls = {
        "certificate": str(server.certificate),
        "key": str(server.key),
        "client_ca": str(authority.certificate),
    }
    with serving(tls=tls) as found:
        yield found


def test_every_door_is_encrypted(encrypted: Running, authority: Authority) -> None:
    for door in ("traces", "metrics", "agents"):
        assert asked(encrypted, *DOORS[door], {}, authority.client()) == 200
        with pytest.raises((OSError, urllib.error.URLError)):
            asked(encrypted, *DOORS[door], {})
    trusting = grpc.ssl_channel_credentials(authority.certificate.read_bytes())

    assert called(encrypted, credentials=trusting) is grpc.StatusCode.OK
    assert called(encrypted) is grpc.StatusCode.UNAVAILABLE


def test_a_client_that_trusts_another_does_not_talk_to_us(
    encrypted: Running, stranger: Authority
) -> None:
    with pytest.raises(urllib.error.URLError):
        asked(encrypted, *DOORS["metrics"], {}, stranger.client())


def test_a_client_of_ours_comes_in(mutual: Running, authority: Authority) -> None:
    pair = authority.issue("client")
    trusting = grpc.ssl_channel_credentials(
        authority.certificate.read_bytes(), pair.key.read_bytes(), pair.certificate.read_bytes()
    )

    assert {
        asked(mutual, *DOORS[door], {}, authority.client(pair))
        for door in ("traces", "metrics", "agents")
    } == {200}
    assert called(mutual, credentials=trusting) is grpc.StatusCode.OK


@pytest.mark.parametrize("wrong", ["none", "expired", "another authority's"])
@pytest.mark.parametrize("door", ["traces", "metrics", "agents", "grpc"])
def test_others_do_not(
    mutual: Running, authority: Authority, stranger: Authority, wrong: str, door: str
) -> None:
    pairs = {
        "none": None,
        "expired": authority.issue("old", days=-1),
        "another authority's": stranger.issue("x"),
    }
    pair = pairs[wrong]
    if door == "grpc":
        key, chain = (
            (None, None) if pair is None else (pair.key.read_bytes(), pair.certificate.read_bytes())
        )
        trusting = grpc.ssl_channel_credentials(authority.certificate.read_bytes(), key, chain)
        assert called(mutual, credentials=trusting) is grpc.StatusCode.UNAVAILABLE
        return
    with pytest.raises((OSError, urllib.error.URLError)):
        asked(mutual, *DOORS[door], {}, authority.client(pair))
