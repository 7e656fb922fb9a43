from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.metrics import SPECS
from otel_reliability.model.span import RawSpan
from otel_reliability.recording import Recording
from otel_reliability.report import json
from otel_reliability.report.build import report_of
from otel_reliability.testing import write_otlp
from tests.report.build import attempts, comparison, loaded, report, run_spans, runs, spoil
from tests.report.schema import faults

FULL = [
    *attempts("refund", True, True, False, path="search pay"),
    *runs(
        "search ask",
        "",
        first=4,
        task="refund",
        success=False,
        session="c",
        notes={"reliability.run.confidence": 0.9},
    ),
    *runs("fetch fetch fetch fetch", first=6, failed="fetch", session="c"),
    *runs("search", first=7, notes={"reliability.condition": "fault"}, success=True),
    *runs(
        "search",
        "read",
        first=8,
        notes={"reliability.input.class": "late", "reliability.branch.kind": "routine"},
    ),
    *run_spans(
        10, "x", notes={"reliability.input.class": "late", "reliability.branch.kind": "escalate"}
    ),
    *runs(
        "search",
        first=11,
        notes={"reliability.violations": ["limit:high"], "reliability.run.confidence": 7.0},
    ),
    *runs("search", "search", first=12, agent="other"),
]


def document(tmp_path: Path, spans: list[RawSpan]) -> Any:
    return loaded(json.render(report(tmp_path, spans)))


@pytest.mark.parametrize("spans", [FULL, FULL[:1], []], ids=["much evidence", "one run", "nothing"])
def test_the_document_is_what_the_schema_says(tmp_path: Path, spans: list[RawSpan]) -> None:
    assert list(faults(document(tmp_path, spans))) == []


def test_a_comparison_is_what_the_schema_says(tmp_path: Path) -> None:
    before = [*FULL, *runs("a", first=20, agent="gone")]
    after = [*FULL[:5], *runs("a", first=20, agent="new")]
    made = loaded(json.render(comparison(tmp_path, before, after)[0]))

    assert list(faults(made)) == []
    assert [each["agent"] for each in made["baseline"]["only_before"]] == ["gone", "other"]


def test_every_metric_is_named_with_its_runs(tmp_path: Path) -> None:
    [agent, _] = sorted(document(tmp_path, FULL)["agents"], key=lambda each: -each["runs"])

    assert agent["metrics"].keys() >= {spec.name for spec in SPECS}
    assert agent["metrics"]["token_budget_pressure"] == {"value": None, "runs": 0}
    assert agent["metrics"]["retry_explosion"] == {"value": 1.0, "runs": 10}


def test_sessions_that_are_written_one_by_one_stand_where_they_belong(tmp_path: Path) -> None:
    spans = [
        *FULL,
        *runs("a", "b", first=40, agent="x", session="s"),
        *runs("a", first=50, agent="x", session="t"),
    ]
    made = report(
        tmp_path,
        [
            *spans,
            *runs("a", first=60, agent="y", session="u"),
            *runs("a", "a", first=70, agent="z"),
        ],
    )

    assert sorted(len(agent.sessions) for agent in made.agents if agent.agent in "xyz") == [0, 1, 2]
    assert json.render(made) == "".join(json.pieces(made))


def test_no_argument_and_no_text_is_in_the_document(tmp_path: Path) -> None:
    spans = [
        replace(
            each,
            attributes={**each.attributes, "gen_ai.tool.call.arguments": '{"card": "4111-1111"}'},
        )
        for each in FULL
    ]

    assert "4111" not in json.render(report(tmp_path, spans))


def test_names_stay_as_they_came(tmp_path: Path) -> None:
    name = "agent\x1b[31m \N{PILE OF POO} " + "x" * 100

    assert document(tmp_path, runs("a", agent=name))["agents"][0]["agent"] == name


def test_what_could_not_be_used_is_counted_by_reason(tmp_path: Path) -> None:
    path = write_otlp(tmp_path / "spans.jsonl", [*FULL, *runs("a", first=30)])
    spoil(path, "nonsense")
    recording = Recording()
    recording.read(path)
    made = json.plain(report_of(recording.close()))

    assert made["spans"]["malformed"] == 1
    assert made["problems"] == {"json": 1}
    assert made["attributes_refused"] == {
        "reliability.run.confidence": {"not a number from 0 to 1": 1}
    }
    assert (
        sum(number for name, number in made["spans"].items() if name != "received")
        == made["spans"]["received"]
    )
