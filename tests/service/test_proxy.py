"""The service behind a reverse proxy that has it below a path, and web pages that send to it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from otel_reliability.config import UISettings
from otel_reliability.errors import ConfigurationError
from otel_reliability.service.proxy import BasePath
from tests.real.web import Answer, ask
from tests.service.running import PROTOBUF, Running, body_of, run_of, serving

BASE = "/tools/reliability"
ORIGIN = "https://app.example.com"
LINK = re.compile(r' (?:href|src|action)="(/[^"]*)"')
PAGES = ["/", "/alerts", "/agents/_/support", "/agents/_/support/runs", "/agents/_/nobody"]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving({"ui": {"proxies": ["127.0.0.0/8"]}}, cors=(ORIGIN,)) as found:
        found.send(run_of())
        found.finalize()
        yield found


@pytest.fixture(scope="module")
def based() -> Iterator[Running]:
    with serving({"ui": {"base_path": BASE}}) as found:
        found.send(run_of())
        found.finalize()
        yield found


def links_of(answer: Answer) -> set[str]:
    found = {link.partition("#")[0] for link in LINK.findall(answer.text)}
    assert len(found) > 5
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_is_below_the_base_path(based: Running, page: str) -> None:
    """A proxy passes the path on, or it removes it: the links are the same, and lead somewhere."""
    passed = links_of(based.get("ui", BASE + page))
    removed = links_of(based.get("ui", page))

    assert passed == removed
    assert {link for link in passed if not link.startswith(BASE + "/")} == set()
    for link in passed:
        assert based.get("ui", link.replace("&amp;", "&")).status == 200


def test_api_and_probes_are_below_the_base_path(based: Running) -> None:
    assert based.get("ui", f"{BASE}/api/v1/agents").status == 200
    assert based.get("ui", f"{BASE}/readyz").status == 200
    assert based.get("ui", "/elsewhere/readyz").status == 404


@pytest.mark.parametrize("page", PAGES)
def test_a_trusted_proxy_names_the_prefix(running: Running, page: str) -> None:
    links = links_of(running.get("ui", page, **{"X-Forwarded-Prefix": "/given/"}))
    assert {link for link in links if not link.startswith("/given/")} == set()


@pytest.mark.parametrize("prefix", ["//evil.example.com", "evil", '/a"b', "/a b", "/", "/../x y"])
def test_a_prefix_that_is_no_path_is_ignored(running: Running, prefix: str) -> None:
    assert links_of(running.get("ui", "/", **{"X-Forwarded-Prefix": prefix})) == links_of(
        running.get("ui", "/")
    )


def test_other_peers_name_no_prefix(based: Running) -> None:
    links = links_of(based.get("ui", "/", **{"X-Forwarded-Prefix": "/given"}))
    assert {link for link in links if not link.startswith(BASE)} == set()


def test_a_proxy_is_an_address_or_a_network() -> None:
    with pytest.raises(ConfigurationError, match="IP address or network"):
        BasePath(UISettings(proxies=("nginx",)))


def test_an_allowed_page_sends_spans(running: Running) -> None:
    url = running.url("http", "/v1/traces")
    asked = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    before = ask(url, headers=asked, method="OPTIONS")
    sent = running.post("traces", body_of(run_of(2)), PROTOBUF, Origin=ORIGIN)

    assert (before.status, sent.status) == (204, 200)
    assert "Content-Type" in (before.headers["Access-Control-Allow-Headers"] or "")
    for answer in (before, sent):
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert answer.headers["Vary"] == "Origin"


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", ORIGIN + ":444"])
def test_no_other_page_is_allowed(running: Running, origin: str) -> None:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    answer = ask(running.url("http", "/v1/traces"), headers=asked, method="OPTIONS")

    assert answer.status == 405
    assert answer.headers["Access-Control-Allow-Origin"] is None


def test_an_allowed_page_reads_no_numbers(running: Running) -> None:
    answer = running.get("ui", "/api/v1/agents", Origin=ORIGIN)
    assert answer.headers["Access-Control-Allow-Origin"] is None
