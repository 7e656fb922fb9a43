"""Prompts as groups: by name and version, else by letters in the order of first appearance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_reliability.change.recording import Observations
from otel_reliability.config import ChangeSettings
from otel_reliability.errors import ConfigurationError
from otel_reliability.mcp import Recordings
from otel_reliability.model.run import Run
from otel_reliability.model.span import RawSpan
from otel_reliability.recording import REPORT_SETTINGS, Recording
from otel_reliability.report.build import report_of
from otel_reliability.report.changes import detected
from otel_reliability.report.view import Baseline
from otel_reliability.testing import write_otlp
from otel_reliability.ui.live import names_of_versions, versions_compared
from tests.report.build import chat, printed, run_spans

PATHS = ("look", "look pay")


def spans_of(*prompts: dict[str, Any]) -> list[RawSpan]:
    """Twenty runs with each prompt in turn, each prompt with a path of its own."""
    return [
        span
        for n in range(20 * len(prompts))
        for span in (
            *run_spans(n + 1, PATHS[n % len(prompts) % 2]),
            chat(n + 1, **prompts[n % len(prompts)]),
        )
    ]


def by_prompt(path: Path, spans: list[RawSpan]) -> tuple[Baseline, str]:
    recording = Recording(split_by="prompt")
    recording.read(write_otlp(path / "spans.jsonl", spans))
    found = report_of(recording.close(), split=True)
    assert found.baseline is not None
    return found.baseline, printed(found)


def test_letters_are_the_same_in_every_invocation(tmp_path: Path) -> None:
    spans = spans_of(
        {"gen_ai__system_instructions": "Be short."}, {"gen_ai__system_instructions": "Be sure."}
    )
    first, page = by_prompt(tmp_path, spans)
    again = [by_prompt(tmp_path, spans)[0] for _ in range(4)]

    groups = first.agents[0].groups
    assert [group.name for group in groups] == ["prompt A", "prompt B"]
    assert groups[0].start < groups[1].start
    assert all(one.agents[0].groups == groups for one in again)
    assert first.agents[0].key.extra == (("prompt", "B"),)
    shown = " ".join(page.split())
    assert (
        f"prompt A: 20 runs, the first at 2023-11-14 22:15 UTC, trace {groups[0].trace_id}" in shown
    )
    assert "pay is used in 0 % → 100 %" in shown


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("gen_ai__prompt__name", "gen_ai__prompt__version", ["refunds 1", "refunds 2"]),
        (
            "langfuse__observation__prompt__name",
            "langfuse__observation__prompt__version",
            ["refunds 1", "refunds 2"],
        ),
        ("unknown", "llm__prompt_template__version", ["1", "2"]),
    ],
)
def test_a_prompt_with_a_name_is_known_by_it(
    tmp_path: Path, name: str, version: str, expected: list[str]
) -> None:
    prompts = [
        {name: "refunds", version: number, "gen_ai__system_instructions": f"text {number}"}
        for number in (1, 2)
    ]
    baseline, _ = by_prompt(tmp_path, spans_of(*prompts))

    assert [group.name for group in baseline.agents[0].groups] == [f"prompt {e}" for e in expected]


def test_an_id_of_each_input_is_no_name(tmp_path: Path) -> None:
    prompts = [
        {
            "gen_ai__prompt__name": f"{n:08x}-1111-4222-8333-444444444444#0",
            "gen_ai__system_instructions": f"text {n % 2}",
        }
        for n in range(4)
    ]
    baseline, _ = by_prompt(tmp_path, spans_of(*prompts))

    assert [group.name for group in baseline.agents[0].groups] == ["prompt A", "prompt B"]


SHORT_THEN_SURE = [
    span
    for n in range(80)
    for span in (
        *run_spans(n + 1, PATHS[n // 40], success=n < 40 or n % 8 == 0),
        chat(n + 1, gen_ai__system_instructions=("Be short.", "Be sure.")[n // 40]),
    )
]
"""Forty runs with one prompt, then forty with another, which mostly fail."""


def test_versions_are_compared_by_the_letters_of_the_report(tmp_path: Path) -> None:
    """In the API and on the page, which have runs; over a recording, in MCP."""
    runs: list[Run] = []
    file = write_otlp(tmp_path / "spans.jsonl", SHORT_THEN_SURE)
    recording = Recording(final=runs.extend)
    recording.read(file)
    recording.close()
    baseline, _ = by_prompt(tmp_path, SHORT_THEN_SURE)
    names = names_of_versions(runs)
    hashes = [value for value, name in names.items() if name in {"prompt A", "prompt B"}]
    source = Recordings([str(file)], REPORT_SETTINGS)
    [line] = source.lines()

    before, after = hashes
    found = [
        versions_compared(runs[0].key, runs, "prompt A", "prompt B", REPORT_SETTINGS),
        versions_compared(runs[0].key, runs, before, after, REPORT_SETTINGS),
    ]
    told = source.compared(line, "prompt A", "prompt B")
    assert {each.sentence for each in found} == {baseline.agents[0].sentence}
    assert [group.name for group in found[1].groups] == ["prompt A", "prompt B"]
    assert told["sentence"] == found[0].sentence
    with pytest.raises(ConfigurationError):
        versions_compared(runs[0].key, runs, "prompt A", "prompt C", REPORT_SETTINGS)


def test_sentences_name_prompts_by_letters(tmp_path: Path) -> None:
    """What else changed, and why runs fail, say the same in every invocation."""
    file = write_otlp(tmp_path / "spans.jsonl", SHORT_THEN_SURE)
    told = set[str]()
    for _ in range(3):
        observations = Observations()
        recording = Recording(final=observations.add)
        recording.read(file)
        [agent] = report_of(recording.close()).agents
        [finding] = detected(observations, ChangeSettings(), {})
        points = [mark.sentence for mark in finding.change.marks if mark.kind == "prompt"]
        told.add(" ".join([*(one.sentence for one in agent.why), *points]))
    [text] = told

    assert "system prompt A → B at observation 41" in text
