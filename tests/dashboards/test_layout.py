"""What a reader of a dashboard finds: every panel explained, in its place, and a way on."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest

from dashboards.alerts import ALERTS, Alert
from dashboards.panels import PART_COLOURS
from tests.dashboards.asking import BOARDS, board, panels

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("name", BOARDS)
def test_every_panel_is_explained(name: str) -> None:
    for panel in panels(name):
        for heading in ("What it means", "Good", "What to do"):
            found = re.search(rf"\*\*{heading}\.\*\* (.+)", panel["description"])
            assert found, panel["title"]
            assert len(found[1]) > 1, panel["title"]
        assert re.match(r"[A-Z][a-z]", panel["fieldConfig"]["defaults"]["noValue"]), panel["title"]


@pytest.mark.parametrize("name", BOARDS)
def test_every_question_goes_to_the_data_source_that_was_chosen(name: str) -> None:
    made = board(name)
    asked = [*panels(name)] + [target for panel in panels(name) for target in panel["targets"]]
    asked += [one for one in made["templating"]["list"] if one["type"] == "query"] + made[
        "annotations"
    ]["list"]

    assert all(one["datasource"] == SOURCE for one in asked)


@pytest.mark.parametrize("name", BOARDS)
def test_panels_have_numbers_of_their_own_and_do_not_overlap(name: str) -> None:
    shown = board(name)["panels"]
    everything = [*shown, *(panel for row in shown for panel in row.get("panels", ()))]

    assert len({panel["id"] for panel in everything}) == len(everything)
    for panel in everything:
        place = panel["gridPos"]
        assert 0 <= place["x"] <= 24 - place["w"], panel["title"]
    for one, other in combinations(shown, 2):
        assert not _overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    def apart(start: str, size: str) -> bool:
        return one[start] + one[size] <= other[start] or other[start] + other[size] <= one[start]

    return not (apart("x", "w") or apart("y", "h"))


@pytest.mark.parametrize("name", BOARDS)
def test_no_row_has_a_hole(name: str) -> None:
    for heading, *below in _sections(name):
        area = sum(panel["gridPos"]["w"] * panel["gridPos"]["h"] for panel in below)
        lowest = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in below)
        assert area == 24 * (lowest - heading["gridPos"]["y"] - 1), heading["title"]


def _sections(name: str) -> list[list[dict[str, Any]]]:
    sections: list[list[dict[str, Any]]] = []
    for panel in board(name)["panels"]:
        if panel["type"] == "row":
            sections.append([])
        sections[-1].append(panel)
        sections[-1] += panel.get("panels", ())
    return sections


def test_an_agent_of_the_fleet_leads_to_its_own_dashboard() -> None:
    (table,) = [panel for panel in panels("fleet") if panel["type"] == "table"]
    (column,) = [
        one for one in table["fieldConfig"]["overrides"] if one["matcher"]["options"] == "Agent"
    ]

    url = column["properties"][0]["value"][0]["url"]
    assert url.startswith(f"/d/{board('agent')['uid']}?")
    for variable, field in (
        ("namespace", "Namespace"),
        ("environment", "Environment"),
        ("service", "Service"),
        ("agent", "Agent"),
    ):
        assert f"var-{variable}=${{__data.fields.{field}:percentencode}}&" in url
    assert "var-datasource=${datasource}&${__url_time_range}" in url


def test_links_between_dashboards_lead_somewhere_and_keep_the_data_source() -> None:
    known = {f"/d/{board(name)['uid']}?var-datasource=${{datasource}}" for name in BOARDS}

    for name in BOARDS:
        assert {link["url"] for link in board(name)["links"]} <= known
        assert board(name)["links"]


def test_the_fleet_can_be_narrowed() -> None:
    variables = {one["name"]: one for one in board("fleet")["templating"]["list"]}

    for name in ("namespace", "environment", "service", "agent"):
        assert (variables[name]["multi"], variables[name]["includeAll"]) == (True, True)
        assert any(
            f"${name}" in target["expr"] for panel in panels("fleet") for target in panel["targets"]
        )


def test_one_agent_is_named_exactly() -> None:
    """A name with brackets is no pattern."""
    for panel in panels("agent"):
        for target in panel["targets"]:
            for label, name in (("gen_ai_agent_name", "agent"), ("service_name", "service")):
                assert f'{label}="${name}"' in target["expr"], panel["title"]


def test_what_stands_there_now_is_asked_of_now() -> None:
    for name in BOARDS:
        for panel in panels(name):
            if panel["type"] in {"stat", "gauge", "bargauge", "table"}:
                assert all(target["instant"] for target in panel["targets"]), panel["title"]


def test_no_data_is_not_green() -> None:
    for name in BOARDS:
        for panel in panels(name):
            if panel["type"] in {"stat", "gauge"}:
                first = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]
                assert first["color"] != "green", panel["title"]


def test_a_part_of_the_score_has_one_colour() -> None:
    found: dict[str, set[str]] = {}
    for name in BOARDS:
        for panel in panels(name):
            for one in panel["fieldConfig"]["overrides"]:
                if one["matcher"]["options"] in PART_COLOURS:
                    colour = one["properties"][0]["value"]["fixedColor"]
                    found.setdefault(one["matcher"]["options"], set()).add(colour)

    assert found == {part: {colour} for part, colour in PART_COLOURS.items()}


def test_points_of_the_distance_histogram_lead_to_traces() -> None:
    with_exemplars = {
        panel["title"]
        for name in BOARDS
        for panel in panels(name)
        for target in panel["targets"]
        if target.get("exemplar")
    }

    assert with_exemplars >= {
        "Path distance of runs",
        "Token pressure of runs",
    }


def test_score_and_penalties_stand_on_one_another() -> None:
    (panel,) = [one for one in panels("agent") if one["title"].startswith("The score, and what")]
    told = " ".join(target["expr"] for target in panel["targets"])

    assert panel["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
    for weight, part in ((15, "path_entropy"), (20, "tool_variance"), (25, "retry_explosion")):
        assert f"{weight} * clamp(max without (instance, job) (agent_reliability_{part}{{" in told
    for part in ("branch_instability", "token_budget_pressure"):
        assert f"20 * clamp(max without (instance, job) (agent_reliability_{part}{{" in told


def test_the_worst_agent_stands_first() -> None:
    (table,) = [panel for panel in panels("fleet") if panel["type"] == "table"]

    assert [(one["displayName"], one["desc"]) for one in table["options"]["sortBy"]] == [
        ("Grade", False),
        ("Succeed", False),
        ("Score", False),
    ]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_a_panel_of_its_metric(alert: Alert) -> None:
    asked = " ".join(
        target["expr"] for name in BOARDS for panel in panels(name) for target in panel["targets"]
    )
    named = set(
        re.findall(r"\b(?:agent|otel)_reliability_\w+?(?=_bucket|_count|\W|$)", alert.value)
    )

    assert any(name in asked for name in named - {"agent_reliability_window_runs"})


def test_the_dashboards_stay_small() -> None:
    unfolded = [panel for name in BOARDS for panel in board(name)["panels"]]

    assert sum(panel["type"] != "row" for panel in unfolded) <= 50
