from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.config import Settings
from otel_reliability.model.span import STATUS_ERROR, RawSpan
from otel_reliability.report.proposal import Proposal
from otel_reliability.testing import span, write_otlp
from tests.cli.command_line import call

SECRET = "canary-4711"


def proposed(*spans: RawSpan) -> list[dict[str, Any]]:
    """The rules for these spans, which the settings must accept."""
    proposal = Proposal()
    for one in spans:
        proposal.add(one)
    rules = proposal.rules()
    assert len(Settings.load({"mapping": {"spans": rules}}).mapping.spans) == len(rules)
    return rules


def step(
    number: int, parent: int | None = None, *, failed: bool = False, **attributes: Any
) -> RawSpan:
    """A span `my_company.step`; its attributes have this prefix too."""
    facts = {f"my_company.{key}": value for key, value in attributes.items()}
    return span(
        number,
        parent,
        trace=1 + number // 100,
        name="my_company.step",
        scope="my_company",
        attributes=facts,
        start=number,
        end=number + (50 if parent is None else 0.5),
        status=STATUS_ERROR if failed else 0,
    )


def recording() -> list[RawSpan]:
    """Three runs of one agent, each with a model call, a search and a booking that fails once and
    is tried again.
    """
    found: list[RawSpan] = []
    for first in (101, 201, 301):
        booking: dict[str, Any] = {"type": "tool", "tool_name": "book", "tool_args": '{"id": 7}'}
        found += [
            step(
                first,
                type="agent",
                agent_name="support",
                session_id=f"c{first}",
                status="success",
                prompt=SECRET,
            ),
            step(first + 1, first, type="llm", model="m-1", input_tokens=100, output_tokens=10),
            step(
                first + 2,
                first,
                type="tool",
                tool_name="search",
                tool_args=SECRET,
                tool_output="2 found",
            ),
            step(first + 3, first, failed=True, **booking),
            step(first + 4, first, **booking),
        ]
    return found


def test_spans_told_apart_by_an_attribute() -> None:
    name = {"name": "my_company.step"}

    assert proposed(*recording()) == [
        {
            "kind": "agent",
            **name,
            "attributes": {"my_company.type": "agent"},
            "agent": "my_company.agent_name",
        }
        | {"session": "my_company.session_id", "outcome": "my_company.status"},
        {
            "kind": "tool",
            **name,
            "attributes": {"my_company.type": "tool"},
            "tool": "my_company.tool_name",
        }
        | {"arguments": "my_company.tool_args", "result": "my_company.tool_output"},
        {
            "kind": "model",
            **name,
            "attributes": {"my_company.type": "llm"},
            "model": "my_company.model",
        }
        | {"input_tokens": "my_company.input_tokens", "output_tokens": "my_company.output_tokens"},
    ]


@pytest.mark.parametrize(
    ("names", "rules"),
    [
        (["tool:search", "tool:book"], [{"kind": "tool", "name": "tool:*"}]),
        (["run_agent"], [{"kind": "agent", "name": "run_agent"}]),
        (
            ["call llm", "executeTool"],
            [{"kind": "tool", "name": "executeTool"}, {"kind": "model", "name": "call llm"}],
        ),
        (["tool [x]"], [{"kind": "tool", "name": "tool [[]x]"}]),
        (["GET /", "SELECT"], []),
    ],
)
def test_spans_told_apart_by_their_names(names: list[str], rules: list[dict[str, Any]]) -> None:
    assert proposed(*[span(number, name=name) for number, name in enumerate(names, 1)]) == rules


def test_spans_told_apart_by_their_keys() -> None:
    spans = [
        span(1, name="x", attributes={"promptTokens": 1, "completionTokens": 1, "modelName": "m"}),
        span(2, name="y", attributes={"toolName": "search", "toolInput": "{}"}),
    ]

    assert proposed(*spans) == [
        {"kind": "tool", "name": "y", "tool": "toolName", "arguments": "toolInput"},
        {"kind": "model", "name": "x", "model": "modelName"}
        | {"input_tokens": "promptTokens", "output_tokens": "completionTokens"},
    ]


def test_an_id_is_no_name() -> None:
    spans = [
        span(1, name="run_agent", attributes={"agentId": "a1", "agentName": "support"}),
        span(2, name="my tool", attributes={"tool.uuid": "t-1"}),
    ]

    assert proposed(*spans) == [
        {"kind": "agent", "name": "run_agent", "agent": "agentName"},
        {"kind": "tool", "name": "my tool"},
    ]


def test_what_opentelemetry_defines_for_any_span_names_nothing() -> None:
    keys = {"user_agent.name": "curl", "http.route": "/chat", "code.function.name": "tool"}
    web = span(name="POST /chat", scope="web", attributes=keys)

    assert proposed(web) == []
    proposal = Proposal()
    proposal.add(web)
    assert [found.suspected for found in proposal.scopes()] == [False]


def test_a_web_server_is_no_model() -> None:
    served = {"http.route": "/v1/models", "http.request.method": "GET", "url.path": "/v1/models"}
    spans = [
        span(1, name="run_agent", attributes={"agentName": "support"}),
        span(2, name="POST /v1/chat/completion", attributes=served),
        span(3, name="select model", attributes={"db.system": "postgresql"}),
    ]

    assert proposed(*spans) == [{"kind": "agent", "name": "run_agent", "agent": "agentName"}]


def test_own_spans_from_the_proposal_to_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_otlp(tmp_path / "spans.jsonl", recording())
    before = call(capsys, "inspect", file).out

    assert "No run was found" in before
    assert "Every number: without a run there is nothing to compute." in before
    assert SECRET not in before
    lines = [line.removeprefix("  ") for line in before.splitlines()]
    pasted = lines[lines.index("mapping:") :]
    settings = tmp_path / "settings.yaml"
    settings.write_text("\n".join(pasted[: pasted.index("")]), encoding="utf-8")

    after = json.loads(call(capsys, "inspect", "--config", settings, "--format", "json", file).out)
    assert (after["unknown"], after["mapping"]) == ([], {"spans": []})
    assert [(one["key"]["agent"], one["runs"], one["outcomes"]) for one in after["agents"]] == [
        ("support", 3, 3)
    ]
    runs = [
        json.loads(line)
        for line in call(capsys, "runs", "--config", settings, file).out.splitlines()
    ]
    assert [run["path"] for run in runs] == [["search", "book", "book"]] * 3
    assert [[(one["ok"], one["retry"]) for one in run["tool_calls"]] for run in runs] == [
        [(True, False), (False, False), (True, True)]
    ] * 3
    assert {(run["session_id"], run["tokens"]["input"]) for run in runs} == {
        ("c101", 100),
        ("c201", 100),
        ("c301", 100),
    }
