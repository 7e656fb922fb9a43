"""Prompts as groups: by name and version, else by letters in the order of first appearance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_reliability.model.span import RawSpan
from otel_reliability.recording import Recording
from otel_reliability.report.build import report_of
from otel_reliability.report.view import Baseline
from otel_reliability.testing import write_otlp
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
