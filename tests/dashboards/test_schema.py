"""Grafana 10, 11, 12 and 13 know every word of the dashboards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.dashboards.asking import BOARDS, board, panels

SCHEMAS = Path(__file__).resolve().parent / "schema"
VERSIONS = (10, 11, 12, 13)
ANNOTATIONS = frozenset({"expr", "step", "textFormat", "titleFormat"})
"""What annotations from Prometheus have of their own: the data source knows it, the schema of all
data sources does not.
"""


@cache
def definitions(version: int) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        (SCHEMAS / f"grafana-{version}.json").read_text(encoding="utf-8")
    )
    return loaded["definitions"]


def complaints(version: int, name: str, thing: object, *, whole: bool = True) -> Iterator[str]:
    """What the schema finds. Of options not all need stand there (`whole`): Grafana fills in the
    defaults when it loads.
    """
    known = definitions(version)
    schema = {
        "$ref": f"#/definitions/{name}",
        "definitions": known if whole else _with_nothing_required(known),
    }
    validator: Any = jsonschema.Draft7Validator(schema)
    for error in validator.iter_errors(thing):
        yield f"{list(error.absolute_path)}: {error.message}"


def _with_nothing_required(schema: Any) -> Any:
    return json.loads(json.dumps(schema), object_hook=_without_required)


def _without_required(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "required"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_is_what_grafana_calls_one(name: str, version: int) -> None:
    made = board(name)
    for annotation in made["annotations"]["list"]:
        for own in ANNOTATIONS:
            del annotation[own]

    assert list(complaints(version, "dashboard", made)) == []


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("name", BOARDS)
def test_a_panel_has_only_options_that_its_kind_knows(name: str, version: int) -> None:
    found: list[str] = []
    for panel in panels(name):
        kind = panel["type"].replace("-", "")
        settings = panel["fieldConfig"]["defaults"].get("custom", {})
        found += complaints(version, f"{kind}.Options", panel["options"], whole=False)
        if f"{kind}.FieldConfig" in definitions(version):
            found += complaints(version, f"{kind}.FieldConfig", settings, whole=False)

    assert found == []


def test_the_schema_finds_what_is_wrong() -> None:
    for version in VERSIONS:
        for wrong in ({"titel": "Fleet"}, {"title": 7}, {"graphTooltip": 9}):
            assert list(complaints(version, "dashboard", board("fleet") | wrong)) != []
    assert list(complaints(11, "heatmap.Options", {"calculat": True}, whole=False)) != []
