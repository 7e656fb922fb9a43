from __future__ import annotations

import re
import runpy
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request
from jsonschema import Draft202012Validator

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason
from otel_reliability.service.agent_removal import AgentRemoval
from otel_reliability.service.api import Agents
from otel_reliability.service.http import OtlpHttp
from otel_reliability.service.outcomes import OutcomeReports
from otel_reliability.service.site import Site
from otel_reliability.service.web import api, metrics, probes
from otel_reliability.testing import agent, tool
from tests.docs.pages import ROOT

DOCUMENT: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "http_api.py"))["DOCUMENT"]
ABSENT = cast("Any", None)


def test_document_names_every_route() -> None:
    parts = (Site, OtlpHttp, OutcomeReports, AgentRemoval)
    answers = api(Agents(ABSENT, ABSENT, ABSENT, ABSENT), ABSENT, ABSENT)
    tables = [
        probes(ABSENT, ABSENT),
        metrics(ABSENT, ABSENT, ABSENT),
        answers,
        *(part.__new__(part).routes() for part in parts),
    ]
    routes = {
        (route.method.lower(), re.sub(r":[^}]*", "", route.path))
        for table in tables
        for route in table
    }

    assert routes == {
        (method, path) for path, methods in DOCUMENT["paths"].items() for method in methods
    }


@pytest.mark.parametrize("runs", [0, 7])
def test_list_of_agents_follows_its_schema(runs: int) -> None:
    engine = Engine(Settings(), wall=None)
    for number in range(runs):
        engine.receive(
            [
                agent(10 * number + 1, trace=number + 1),
                tool(10 * number + 2, 10 * number + 1, "search", trace=number + 1),
            ]
        )
    engine.flush(CloseReason.END_OF_INPUT)
    schema = DOCUMENT["paths"]["/api/v1/agents"]["get"]["responses"]["200"]["content"][
        "application/json"
    ]["schema"]
    validator: Any = Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    answer = Agents(engine, ABSENT, ABSENT, ABSENT).page(
        make_mocked_request("GET", "/api/v1/agents?limit=10")
    )

    assert [fault.message for fault in validator.iter_errors(answer)] == []
    assert bool(answer["agents"]) == bool(runs)
