from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboards.generate import MADE, places
from otel_reliability.dashboards import FILES, Installation, adapted, write
from tests.dashboards.asking import ROOT, SHIPPED, alerts_in, rules_in

ELSEWHERE = Installation("P1809", "https://wiki.example/alerts.md")


def test_default_installation_is_written_as_shipped(tmp_path: Path) -> None:
    write(tmp_path, Installation())

    for name, path in FILES.items():
        assert (tmp_path / path).read_text(encoding="utf-8") == (SHIPPED / name).read_text(
            encoding="utf-8"
        )


def test_a_data_source_is_named_wherever_it_stands() -> None:
    told = {path.name: text for path, text in adapted(ELSEWHERE)}
    alerting = {str(path): text for path, text in adapted(ELSEWHERE)}[str(FILES["alerting.yaml"])]

    for name in ("fleet.json", "agent.json"):
        (chosen,) = [
            one
            for one in json.loads(told[name])["templating"]["list"]
            if one["type"] == "datasource"
        ]
        assert chosen["current"] == {"selected": True, "text": "P1809", "value": "P1809"}
    sources = {query["datasourceUid"] for rule in rules_in(alerting) for query in rule["data"]}
    assert sources == {"P1809", "__expr__"}


def test_runbooks_are_named_wherever_they_stand() -> None:
    told = {str(path): text for path, text in adapted(ELSEWHERE)}

    for name in ("rules.yaml", "alerting.yaml"):
        rules = alerts_in(told[str(FILES[name])])
        assert rules
        assert all(
            rule["annotations"]["runbook_url"].startswith("https://wiki.example/alerts.md#")
            for rule in rules
        )


@pytest.mark.parametrize("uid", ["with: colon", 'a "quote"', "# no comment", "yes", "123"])
def test_a_name_that_means_something_in_yaml_stays_a_name(uid: str) -> None:
    told = {path.name: text for path, text in adapted(Installation(uid))}

    first, *_ = rules_in(dict(adapted(Installation(uid)))[FILES["alerting.yaml"]])
    assert first["data"][0]["datasourceUid"] == uid
    assert json.loads(told["fleet.json"])


@pytest.mark.parametrize("name", sorted(MADE))
def test_no_file_has_fallen_behind(name: str) -> None:
    made = MADE[name]()

    for place in places(name):
        assert place.read_text(encoding="utf-8") == made, (
            f"run `make docs`: {place.relative_to(ROOT)}"
        )


def test_all_that_is_made_is_shipped() -> None:
    assert MADE.keys() == FILES.keys()
