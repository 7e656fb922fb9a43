"""Names that agents choose are data in every answer of the service."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import pytest

from tests.service.running import Running, runs_of, serving

HOSTILE = "a{b}\u202e<b>x|y\n=1 @octocat"
BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def named() -> Iterator[Running]:
    """A service that has seen an agent and a tool of hostile names."""
    with serving() as running:
        running.send(runs_of(6, ("se{a}rch\u202e",), HOSTILE))
        yield running


@pytest.mark.parametrize("page", ["", "/runs", "/compare"])
def test_agent_of_any_name_has_pages(named: Running, page: str) -> None:
    front = named.get("ui", "/").text
    link = re.findall(r'href="(/agents/[^"]+)"', front)[0].replace("&amp;", "&")

    answer = named.get("ui", link.replace("?", f"{page}?"))

    assert answer.status == 200
    assert "a{b}\\u202e&lt;b&gt;x|y·=1" in answer.text
    assert not BIDIRECTIONAL.search(answer.text + front)


@pytest.mark.parametrize("path", ["", "/runs", "/gate?require=score>=1"])
def test_agent_of_any_name_is_found_by_the_api(named: Running, path: str) -> None:
    front = named.get("ui", "/").text
    link = re.findall(r'href="(/agents/[^"?]+)', front)[0]

    assert named.get("ui", f"/api/v1{link}{path}").status == 200


@pytest.mark.parametrize("name", ["=1+1", "\ufeff=1+1", "\u200b@x", " +1", "\n-1", "＝1+1"])
def test_spreadsheet_runs_no_name(name: str) -> None:
    with serving() as running:
        running.send(runs_of(1, agent=name))
        text = running.get("ui", "/api/v1/agents?format=csv").body.decode()

    [row] = csv.DictReader(io.StringIO(text, newline=""))
    assert row["agent"] == f"'{name.strip()}"
