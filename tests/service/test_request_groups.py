"""Kinds of request in the service: listed, named, compared; letters and names outlive a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgspec.structs import replace

from otel_reliability.model.span import RawSpan
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import Running, run_of, serving

ENGINE = {"metrics": {"min_runs": 2}}
PAGE = "/agents/shop/support"


def asked(text: str, tools: tuple[str, ...], first: int, number: int) -> list[RawSpan]:
    found: list[RawSpan] = []
    for trace in range(first, first + number):
        root, *calls = run_of(trace, tools, start=10.0 * trace)
        found += [replace(root, attributes={**root.attributes, "input.value": text}), *calls]
    return found


def groups_of(running: Running) -> dict[str, dict[str, Any]]:
    answer = json.loads(running.get("ui", f"/api/v1{PAGE}").text)
    return {group["id"]: group for group in answer["agents"][0]["request_groups"]}


def test_kinds_of_request_keep_their_letters_and_names(tmp_path: Path) -> None:
    with serving(ENGINE, state=str(tmp_path)) as running:
        running.send(asked("cancel my order please", ("find", "cancel"), 1, 6))
        running.send(asked("what is the weather tomorrow", ("forecast",), 20, 6))
        groups = groups_of(running)
        weather = next(id_ for id_, one in groups.items() if one["usual_path"] == ["forecast"])
        [cancel] = groups.keys() - {weather}
        assert {one["runs"] for one in groups.values()} == {6}

        target = running.url("ui", f"/api/v1{PAGE}/groups/{weather}?name=Weather")
        assert ask(target, body=b"", method="PUT").status == 200
        unknown = running.url("ui", f"/api/v1{PAGE}/groups/ZZ?name=no")
        assert ask(unknown, body=b"", method="PUT").status == 404
        page = running.url("ui", f"{PAGE}/group")
        form = urlencode({"group": cancel, "name": "Cancel <b>"}).encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        elsewhere = {**kind, "Origin": "https://elsewhere.example"}
        assert ask(page, body=form, headers=elsewhere).status == 403
        own = {**kind, "Origin": f"http://{urlsplit(page).netloc}"}
        assert ask(page, body=form, headers=own).status in {200, 303}
        shown = running.get("ui", PAGE).text
        assert "Weather" in shown
        assert "Cancel &lt;b&gt;" in shown

        listed = json.loads(running.get("ui", f"/api/v1{PAGE}/runs?group={weather}").text)["runs"]
        assert len(listed) == 6
        sides = f"group={weather}&other={cancel}"
        answer = json.loads(running.get("ui", f"/api/v1{PAGE}/compare?{sides}").text)
        assert [side["runs"] for side in answer["agents"][0]["groups"]] == [6, 6]
        assert running.get("ui", f"/api/v1{PAGE}/compare?group=ZZ&other=A").status == 400
        both = f"before.group={weather}&after.group={cancel}"
        assert "Before and after" in running.get("ui", f"{PAGE}/compare?{both}").text

    with serving(ENGINE, state=str(tmp_path)) as running:
        running.send(asked("what is the weather tomorrow", ("forecast",), 40, 2))
        until(lambda: groups_of(running)[weather]["runs"] == 8, "both runs")
        again = groups_of(running)
        assert again[weather]["name"] == "Weather"
        assert again[cancel]["name"] == "Cancel <b>"
