from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from otel_reliability import annotate
from otel_reliability.model.span import RawSpan
from otel_reliability.report.gaps import EVIDENCE, Evidence, Gap, gaps_of
from otel_reliability.testing import span
from tests.report.build import card, runs


def gaps(tmp_path: Path, spans: list[RawSpan]) -> dict[str, Gap]:
    """What is missing, by what it is."""
    return {gap.missing: gap for gap in gaps_of(card(tmp_path, spans).rows)}


def test_what_is_missing_is_counted_among_those_that_could_have_it(tmp_path: Path) -> None:
    """A context limit is wanted of runs with tokens only, a second attempt of runs with a task."""
    call = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5}
    spans = [*runs("a"), *runs("a", "a", first=2, task="t"), *runs("a", first=4, task="u")]
    found = gaps(tmp_path, [*spans, span(9, 1, start=100.0, end=100.1, attributes=call)])

    assert (found["task ids"].runs, found["task ids"].of) == (1, 4)
    assert (found["second attempts at a task"].runs, found["second attempts at a task"].of) == (1, 3)
    assert (found["tokens"].runs, found["tokens"].of) == (3, 4)
    assert (found["context limits"].runs, found["context limits"].of) == (1, 1)
    assert found.keys() >= {"outcomes", "confidence", "perturbed runs", "judged constraints", "conversation ids"}


def test_evidence_that_is_there_is_no_gap(tmp_path: Path) -> None:
    """Nobody is asked for what was sent."""
    notes: dict[str, Any] = {"reliability.run.confidence": 0.9, "reliability.violations": []}
    spans = runs("a", "a", task="t", success=True, session="s", notes=notes)
    spans += runs("a", first=3, task="t", success=True, session="s", notes={**notes, "reliability.condition": "fault"})

    assert gaps(tmp_path, spans).keys() == {"tokens", "judgements in sessions"}


def test_tools_that_cannot_be_seen_are_a_gap(tmp_path: Path) -> None:
    """A model call asked for a tool, and no span tells of one."""
    call = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["tool_calls"]}
    found = gaps(tmp_path, [*runs(""), span(9, 1, start=100.0, end=100.1, attributes=call)])

    assert (found["tool calls"].runs, found["tool calls"].of) == (1, 1)
    assert "arguments of tool calls" not in found


@pytest.mark.parametrize("evidence", EVIDENCE, ids=[evidence.missing for evidence in EVIDENCE])
def test_remedies_name_what_there_is(evidence: Evidence) -> None:
    """Each is one line, and what it tells to pass to `annotate` can be passed."""
    call = evidence.remedy.partition("annotate(")[2].partition("=")[0]

    assert len(evidence.remedy) <= 80
    assert not call or call in inspect.signature(annotate).parameters
