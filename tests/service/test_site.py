from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from otel_reliability.read_view import ReadView
from otel_reliability.service.health import RECOVERING
from otel_reliability.ui.agent_list import id_of
from tests.otlp import traces_protobuf
from tests.service.running import Running, lone_agent, runs_of, serving

TOKEN: Final = "a-token-of-32-characters-or-more"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving({"metrics": {"min_runs": 2}}) as found:
        found.post("traces", traces_protobuf(runs_of(6, ("search", "book"))))
        found.send([lone_agent("clerk", 200, "prod"), lone_agent("clerk", 201, "test")])
        yield found


def links(text: str) -> list[str]:
    return re.findall(r'href="(/agents/[^"]+)"', text)


def test_the_table_leads_to_every_agent(running: Running) -> None:
    found = links(running.get("ui", "/").text)
    pages = [running.get("ui", link).text for link in found]

    assert len(set(found)) == 3
    assert sorted(re.findall(r'class="head__about">([^<]+)<', " ".join(pages))) == [
        "bank · prod",
        "bank · test",
        "shop · test",
    ]


def test_an_agent_is_found_by_service_and_name(running: Running) -> None:
    by_name = running.get("ui", "/agents/bank/clerk")
    by_wrong_id = running.get("ui", "/agents/shop/support?id=zz")

    assert by_name.status == by_wrong_id.status == 200
    assert "bank · prod" in by_name.text
    assert "support" in by_wrong_id.text


def test_whom_nobody_knows_is_a_page_too(running: Running) -> None:
    answer = running.get("ui", "/agents/shop/nobody")

    assert answer.status == 404
    assert "No such agent or run is kept here." in answer.text


@pytest.mark.parametrize(
    "path", ["/", "/agents/shop/support", "/agents/shop/nobody", "/static/page.css"]
)
def test_nothing_foreign_can_run(running: Running, path: str) -> None:
    answer = running.get("ui", path)
    policy = answer.headers["Content-Security-Policy"] or ""

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(
        r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=",
        answer.text if path != "/static/page.css" else "",
    )


def test_what_has_not_changed_is_not_sent_again(running: Running) -> None:
    first = running.get("ui", "/")
    again = running.get("ui", "/", If_None_Match=first.headers["ETag"] or "")
    other = running.get("ui", "/?q=clerk", If_None_Match=first.headers["ETag"] or "")

    assert (again.status, again.body) == (304, b"")
    assert other.status == 200


def test_files_keep_for_as_long_as_their_name_says(running: Running) -> None:
    page = running.get("ui", "/").text
    named = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    answers = [running.get("ui", path) for path in named]

    assert len(named) >= 5
    assert all(
        answer.status == 200 and "immutable" in (answer.headers["Cache-Control"] or "")
        for answer in answers
    )
    assert running.get("ui", "/static/page.css?old").headers["Cache-Control"] == "no-cache"
    assert [
        running.get("ui", f"/static/{name}").status
        for name in ("nothing.css", "../rendering.py", "vendor")
    ] == [404] * 3


def test_an_empty_table_names_the_real_doors() -> None:
    with serving(token=TOKEN) as running:
        page = running.get("ui", "/", Authorization=f"Bearer {TOKEN}").text

        assert f"http://{running.service.addresses['http']}" in page
        assert f"http://{running.service.addresses['grpc']}" in page
        assert "OTEL_EXPORTER_OTLP_HEADERS" in page
        assert TOKEN not in page


def test_an_empty_table_says_that_no_door_is_open() -> None:
    with serving(http="off", grpc="off") as running:
        assert "off in the settings" in running.get("ui", "/").text


@pytest.mark.parametrize("path", ["/", "/agents/shop/support", "/static/page.css"])
def test_pages_ask_for_the_token(path: str) -> None:
    with serving(token=TOKEN) as running:
        bare = running.get("ui", path, Accept="text/html")
        packed = base64.b64encode(f"anybody:{TOKEN}".encode()).decode()
        guess = base64.b64encode(f"{TOKEN}:guess".encode()).decode()

        assert bare.status == 401
        assert (bare.headers["WWW-Authenticate"] or "").startswith("Basic ")
        assert running.get("ui", path, Authorization=f"Basic {guess}").status == 401
        assert running.get("ui", path, Authorization=f"Basic {packed}").status in {200, 404}


def test_no_number_is_shown_while_state_is_loaded(running: Running) -> None:
    running.service.readiness.hold(RECOVERING, "state is being loaded")
    try:
        answer = running.get("ui", "/")
    finally:
        running.service.readiness.release(RECOVERING)

    assert answer.status == 503
    assert "being loaded" in answer.text


def test_the_api_and_the_pages_name_the_same_agents(running: Running) -> None:
    told = json.loads(running.get("ui", "/api/v1/agents").body)["agents"]
    shown = links(running.get("ui", "/").text)
    ids = {id_of(key) for key in running.service.engine.read(lambda agents: agents.keys()) or ()}

    assert len(told) == len(shown) == 3
    assert {link.rpartition("=")[2] for link in shown} == ids


def test_pages_leave_turns_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"metrics": {"min_runs": 2}}) as running:
        names = (f"agent-{number}" for number in range(120))
        spans = [
            one
            for number, name in enumerate(names)
            for one in runs_of(1, agent=name, first=number + 1)
        ]
        running.send(spans)
        turns = list[int]()
        read = running.service.engine.read

        def counted(ask: Callable[[ReadView], Any]) -> Any:
            turns.append(threading.get_ident())
            return read(ask)

        monkeypatch.setattr(running.service.engine, "read", counted)
        page = running.get("ui", "/").text

        assert "120 agents" in page
        assert len(turns) >= 1 + 12  # whoever keeps the curves may look meanwhile
