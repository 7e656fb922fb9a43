"""What the package does with its files: adapt them to a place, and write them without harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from otel_reliability.dashboards import FILES, Installation, adapted, write
from otel_reliability.errors import ConfigurationError
from tests.dashboards.asking import SHIPPED

ELSEWHERE = Installation("P1809", "Mimir", "/var/lib/grafana/boards", "https://wiki.example/alerts.md")


def test_without_wishes_files_are_written_as_they_are_shipped(tmp_path: Path) -> None:
    """The place that is the default is the one that the files were made for."""
    write(tmp_path, Installation())

    for name, path in FILES.items():
        assert (tmp_path / path).read_text(encoding="utf-8") == (SHIPPED / name).read_text(encoding="utf-8")


def test_a_data_source_is_named_wherever_it_stands() -> None:
    """Dashboards begin with it, alerts ask it, and what evaluates conditions stays Grafana's own."""
    told = {path.name: text for path, text in adapted(ELSEWHERE)}
    alerting = {str(path): text for path, text in adapted(ELSEWHERE)}[str(FILES["alerting.yaml"])]

    for name in ("fleet.json", "agent.json"):
        (chosen,) = [one for one in json.loads(told[name])["templating"]["list"] if one["type"] == "datasource"]
        assert chosen["current"] == {"selected": True, "text": "Mimir", "value": "P1809"}
    sources = [
        query["datasourceUid"]
        for group in yaml.safe_load(alerting)["groups"]
        for rule in group["rules"]
        for query in rule["data"]
    ]
    assert set(sources) == {"P1809", "__expr__"}


def test_paths_and_runbooks_are_named_wherever_they_stand() -> None:
    """Grafana is told where the dashboards are, and every alert of both kinds where its runbook is."""
    told = {str(path): text for path, text in adapted(ELSEWHERE)}

    (provider,) = yaml.safe_load(told[str(FILES["provider.yaml"])])["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/boards"
    for name in ("rules.yaml", "alerting.yaml"):
        rules = [rule for group in yaml.safe_load(told[str(FILES[name])])["groups"] for rule in group["rules"]]
        assert rules
        assert all(rule["annotations"]["runbook_url"].startswith("https://wiki.example/alerts.md#") for rule in rules)


@pytest.mark.parametrize("uid", ["with: colon", 'a "quote"', "# no comment", "yes", "123"])
def test_a_name_that_means_something_in_yaml_stays_a_name(uid: str) -> None:
    """Whatever the uid is, alerts ask the data source of that uid."""
    told = {path.name: text for path, text in adapted(Installation(uid))}

    first = yaml.safe_load(dict(adapted(Installation(uid)))[FILES["alerting.yaml"]])["groups"][0]["rules"][0]
    assert first["data"][0]["datasourceUid"] == uid
    assert json.loads(told["fleet.json"])


def test_what_stands_is_not_overwritten(tmp_path: Path) -> None:
    """One file that is there already: nothing at all is written, and the message says what to do."""
    theirs = tmp_path / FILES["rules.yaml"]
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")

    with pytest.raises(ConfigurationError, match="--force"):
        write(tmp_path, Installation())

    assert theirs.read_text() == "theirs"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs]
