"""The user's own attributes."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.model.span import Notes
from otel_reliability.testing import span
from tests.conventions.reading import read, run

AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "span-name"}
MAPPING: dict[str, Any] = {
    "agent": ["app.bot", "app.agent"],
    "session": ["app.chat"],
    "task": ["app.ticket", "app.case"],
    "outcome": ["app.resolved"],
    "confidence": ["app.sure"],
    "cost": ["app.usd"],
}


def test_an_agents_name_is_replaced() -> None:
    named = {**AGENT, "app.agent": "refunds"}

    assert run(span(attributes=named), mapping=MAPPING).key.agent == "refunds"
    assert run(span(attributes={**named, "app.bot": "first"}), mapping=MAPPING).key.agent == "first"
    assert run(span(attributes=AGENT), mapping=MAPPING).key.agent == "span-name"
    assert read(span(attributes={"app.bot": "x"}), mapping=MAPPING).facts is None


def test_a_mapped_session_is_the_strongest() -> None:
    attributes = {**AGENT, "gen_ai.conversation.id": "other", "app.chat": 7}

    assert run(span(attributes=attributes), mapping=MAPPING).session_id == "7"
    assert (
        run(
            span(attributes={**AGENT, "gen_ai.conversation.id": "other"}), mapping=MAPPING
        ).session_id
        == "other"
    )


def test_notes_are_read_under_the_same_checks() -> None:
    attributes = {"app.case": 12, "app.resolved": "yes", "app.sure": "0.25", "app.usd": 0.5}

    assert read(span(attributes=attributes), mapping=MAPPING).notes == Notes(
        "12", success=True, confidence=0.25, cost=0.5
    )
    assert read(span(attributes={}), mapping=MAPPING).notes is None


@pytest.mark.parametrize(
    ("value", "meant"),
    [("Failed", False), ("success", True), (True, True), (0, False), ("ok", True)],
)
def test_an_outcome_has_words_of_its_own(value: object, meant: bool) -> None:
    found = read(span(attributes={"app.resolved": value}), mapping=MAPPING).notes

    assert found == Notes(success=meant)


def test_what_cannot_stand_is_named_as_it_came() -> None:
    found = read(
        span(attributes={"app.sure": 17, "app.resolved": "perhaps", "reliability.trial": -1}),
        mapping=MAPPING,
    ).notes

    assert found is not None
    assert found.refused == (
        ("reliability.trial", "not a whole number from 0"),
        ("app.resolved", "not true or false"),
        ("app.sure", "not a number from 0 to 1"),
    )


def test_what_reliability_attributes_say_is_stronger() -> None:
    attributes = {
        "app.ticket": "theirs",
        "reliability.task.id": "ours",
        "app.sure": 0.5,
        "reliability.run.confidence": 17,
    }
    found = read(span(attributes=attributes), mapping=MAPPING).notes

    assert found is not None
    assert (found.task_id, found.confidence) == ("ours", None)
    assert found.refused == (("reliability.run.confidence", "not a number from 0 to 1"),)
