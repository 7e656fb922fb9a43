from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from otel_reliability.change.result import Result
from otel_reliability.config import ChangeSettings
from otel_reliability.errors import ConfigurationError
from otel_reliability.model.run import AgentKey
from otel_reliability.reference import ReferenceByName
from otel_reliability.report import changes
from otel_reliability.report.changes import (
    BY_NAME,
    NOT_PINNED,
    PINNED,
    SEVERAL,
    Finding,
    compared,
    detected,
    pairs,
)
from otel_reliability.report.text import place
from tests.change.build import exchangeable

SETTINGS = ChangeSettings(runs_per_false_alarm=500)
SUPPORT = AgentKey("acme", "shop", "prod", "support")
REFUNDS = AgentKey("acme", "shop", "prod", "refunds")
STAGED = AgentKey("acme", "shop", "staging", "support")

CHANGED = exchangeable(100) + exchangeable(40, 1, 101, longer=4)
"""Observations of an agent that changes at the 101st."""


def page(findings: Sequence[Finding], width: int = 300) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    changes.render(findings, SETTINGS, console)
    assert isinstance(console.file, io.StringIO)
    return "".join(line.rstrip() + "\n" for line in console.file.getvalue().splitlines())


def test_each_agent_has_a_verdict_of_its_own() -> None:
    observations = {SUPPORT: CHANGED, REFUNDS: exchangeable(140, 2), STAGED: exchangeable(30)}
    findings = detected(observations, SETTINGS, {})
    assert [(one.key, one.change.verdict) for one in findings] == [
        (REFUNDS, Result.NO_CHANGE),
        (SUPPORT, Result.CHANGED),
        (STAGED, Result.NO_RESULT),
    ]
    assert findings[1].change.sentence.startswith("changed about observation 10")
    assert [one.key for one in detected(observations, SETTINGS, {}, ["refund*"])] == [REFUNDS]
    with pytest.raises(ConfigurationError):
        detected(observations, SETTINGS, {}, ["nobody"])


def test_a_reference_recording_stands_for_the_agents_it_holds() -> None:
    observations = {SUPPORT: exchangeable(40, 5, longer=4), REFUNDS: exchangeable(140, 2)}
    support, refunds = sorted(
        detected(observations, SETTINGS, {SUPPORT: exchangeable(100)}),
        key=lambda one: one.change.verdict.value,
    )
    assert (support.change.verdict, support.change.note) == (Result.CHANGED, PINNED)
    assert (refunds.change.verdict, refunds.change.note) == (Result.NO_CHANGE, NOT_PINNED)
    assert {one.change.note for one in detected(observations, SETTINGS, {})} == {""}


def test_a_reference_of_another_place_stands_for_who_has_its_name_alone() -> None:
    """It is said which agent that is; where several have the name nobody guesses, and that is said,
    too.
    """
    elsewhere = SUPPORT._replace(environment="lab")
    observations = {SUPPORT: exchangeable(40, 5, longer=4)}
    (by_name,) = detected(observations, SETTINGS, ReferenceByName({elsewhere: exchangeable(100)}))
    both = ReferenceByName({elsewhere: exchangeable(100), SUPPORT: exchangeable(100)})
    (exact,) = detected(observations, SETTINGS, both)
    several = ReferenceByName({elsewhere: exchangeable(100), STAGED: exchangeable(100)})
    (unsure,) = detected(observations, SETTINGS, several)
    (absent,) = detected(observations, SETTINGS, ReferenceByName({REFUNDS: exchangeable(100)}))

    assert (by_name.change.verdict, by_name.change.note) == (
        Result.CHANGED,
        f"{BY_NAME} ({place(elsewhere)})",
    )
    assert (exact.change.verdict, exact.change.note) == (Result.CHANGED, PINNED)
    assert (unsure.change.verdict, unsure.change.note) == (Result.NO_RESULT, SEVERAL)
    assert (absent.change.verdict, absent.change.note) == (Result.NO_RESULT, NOT_PINNED)


def test_two_recordings_are_compared_agent_by_agent() -> None:
    before = {SUPPORT: exchangeable(60), REFUNDS: exchangeable(60, 1)}
    late = AgentKey("", "other", "", "late")
    after = {SUPPORT: exchangeable(60, 2, longer=4), late: exchangeable(60, 3)}
    findings = compared(before, after)
    assert {one.key.agent: one.change.verdict for one in findings if one.key is not None} == {
        "support": Result.CHANGED,
        "refunds": Result.NO_RESULT,
        "late": Result.NO_RESULT,
    }
    sentences = {one.key.agent: one.change.sentence for one in findings if one.key is not None}
    assert "in the later recording" in sentences["refunds"]
    assert "in the earlier recording" in sentences["late"]


def test_agents_are_paired_by_key_then_by_name_then_alone() -> None:
    """An agent that moved is known by its name, unless two have it; one alone on each side is the
    same under any name.
    """
    assert pairs([SUPPORT, STAGED], [SUPPORT, STAGED]) == {SUPPORT: SUPPORT, STAGED: STAGED}
    assert pairs([STAGED, REFUNDS], [SUPPORT, REFUNDS]) == {SUPPORT: STAGED, REFUNDS: REFUNDS}
    assert pairs([STAGED, SUPPORT], [SUPPORT._replace(environment="x"), REFUNDS]) == {}
    assert pairs([REFUNDS], [SUPPORT]) == {SUPPORT: REFUNDS}
    assert pairs([REFUNDS], [SUPPORT, STAGED]) == {}


def test_without_any_agent_there_is_no_verdict() -> None:
    for findings in (detected({}, SETTINGS, {}), compared({}, {})):
        assert [(one.key, one.change.verdict) for one in findings] == [(None, Result.NO_RESULT)]
        assert "the recording" in page(findings)


def test_the_page_tells_changes_first_and_how_far_to_trust_them() -> None:
    shown = page(detected({SUPPORT: CHANGED, REFUNDS: exchangeable(140, 2)}, SETTINGS, {}))
    lines = shown.splitlines()
    assert lines[0] == "● support  acme / shop · prod"
    assert lines[1].startswith("  changed about observation 10")
    assert "report --agent support --since " in lines[2]
    assert lines[3:5] == ["✓ refunds  acme / shop · prod", "  no change in 140 observations"]
    assert "2 agents: 1 changed, 1 unchanged" in lines
    assert "once in 500 observations or less often" in shown
    assert "The first 60 observations, and 60 after each alarm, are the baseline" in shown


def test_the_page_on_two_recordings_says_who_was_compared() -> None:
    shown = page(compared({REFUNDS: exchangeable(60)}, {SUPPORT: exchangeable(50, 1)}))
    assert "✓ support (before: refunds)" in shown
    assert "60 observations before, 50 after" in shown
    assert "in at most 1 % of cases" in shown
    moved = page(compared({STAGED: exchangeable(60)}, {SUPPORT: exchangeable(50, 1)}))
    assert "support (before: acme / shop · staging)" in moved


def test_a_name_cannot_command_the_terminal() -> None:
    evil = "\x1b[2Jevil"
    observations = [one._replace(path=(evil,)) for one in exchangeable(60, 3)]
    before = {SUPPORT: exchangeable(60)}
    after = {SUPPORT._replace(agent=evil): observations}
    shown = page(compared(before, after))
    assert "evil is used in" in shown
    assert "\x1b" not in shown


def test_json_has_the_numbers_behind_the_sentence() -> None:
    document = changes.document(detected({SUPPORT: CHANGED}, SETTINGS, {}), SETTINGS)
    (agent,) = document["agents"]
    signal = agent["alarms"][0]["signals"][0]
    assert (
        agent["service_namespace"],
        agent["service"],
        agent["environment"],
        agent["agent"],
    ) == SUPPORT[:4]
    assert (agent["verdict"], agent["observations"], document["summary"]) == (
        "changed",
        140,
        "1 changed",
    )
    assert signal["before"]["observations"] > signal["after"]["observations"] > 0
    assert signal["since"].endswith("Z")
    (agent,) = changes.document(
        compared({REFUNDS: CHANGED}, {SUPPORT: exchangeable(50, 1)}), SETTINGS
    )["agents"]
    assert agent["earlier_agent"] == "refunds"
    assert {test["signal"] for test in agent["tests"]} == set(document["signals"])
