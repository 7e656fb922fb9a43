from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from rich.console import Console

from otel_reliability.change.result import Result
from otel_reliability.config import ChangeSettings
from otel_reliability.contrast.sample import Sample
from otel_reliability.errors import ConfigurationError
from otel_reliability.model.observation import Observation
from otel_reliability.model.run import AgentKey
from otel_reliability.reference import ReferenceByName
from otel_reliability.report import changes
from otel_reliability.report.changes import (
    BY_NAME,
    NOT_PINNED,
    PINNED,
    SEVERAL,
    ChangeResult,
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


def samples(*args: int, **facts: int) -> list[Sample]:
    """Runs of the observations of `exchangeable`, as comparisons need them."""
    return [sample_like(one) for one in exchangeable(*args, **facts)]


def sample_like(one: Observation) -> Sample:
    return Sample(
        run_id=one.id,
        end_ns=one.end_ns,
        block=("trace", one.id),
        task=one.task,
        input_class=None,
        path=one.path,
        failed=frozenset(),
        retried=frozenset(),
        repeated=frozenset(),
        calls=one.calls,
        failed_calls=one.failed_calls,
        model_calls=one.replies or None,
        tokens=one.output_tokens,
        largest_input=one.largest_input,
        duration_s=1.0,
        cost=None,
        success=None,
        ended_in_error=None,
        compressed=False,
        fingerprints=one.fingerprints,
    )


def page(findings: Sequence[ChangeResult], width: int = 300) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    changes.render(findings, SETTINGS, console)
    assert isinstance(console.file, io.StringIO)
    return "".join(line.rstrip() + "\n" for line in console.file.getvalue().splitlines())


def test_each_agent_has_a_verdict_of_its_own() -> None:
    observations = {SUPPORT: CHANGED, REFUNDS: exchangeable(140, 2), STAGED: exchangeable(30)}
    findings = detected(observations, SETTINGS, {})
    assert [(one.key, one.change.result) for one in findings] == [
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
        key=lambda one: one.change.result.value,
    )
    assert (support.change.result, support.change.note) == (Result.CHANGED, PINNED)
    assert (refunds.change.result, refunds.change.note) == (Result.NO_CHANGE, NOT_PINNED)
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

    assert (by_name.change.result, by_name.change.note) == (
        Result.CHANGED,
        f"{BY_NAME} ({place(elsewhere)})",
    )
    assert (exact.change.result, exact.change.note) == (Result.CHANGED, PINNED)
    assert (unsure.change.result, unsure.change.note) == (Result.NO_RESULT, SEVERAL)
    assert (absent.change.result, absent.change.note) == (Result.NO_RESULT, NOT_PINNED)


def test_two_recordings_are_compared_agent_by_agent() -> None:
    before = {SUPPORT: samples(60), REFUNDS: samples(60, 1)}
    late = AgentKey("", "other", "", "late")
    after = {SUPPORT: samples(60, 2, longer=4), late: samples(60, 3)}
    findings = compared(before, after)
    assert {one.key.agent: one.change.result for one in findings if one.key is not None} == {
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
        assert [(one.key, one.change.result) for one in findings] == [(None, Result.NO_RESULT)]
        assert "the recording" in page(findings)


def test_the_page_tells_changes_first_and_how_far_to_trust_them() -> None:
    shown = page(detected({SUPPORT: CHANGED, REFUNDS: exchangeable(140, 2)}, SETTINGS, {}))
    lines = shown.splitlines()
    assert lines[0] == "● support  acme / shop · prod"
    assert lines[1].startswith("  changed about observation 10")
    assert "report --agent support --since " in lines[2]
    assert lines[3:5] == [
        "✓ refunds  acme / shop · prod",
        "  no change found of paths, calls, tokens or failures in 140 observations",
    ]
    assert "2 agents: 1 changed, 1 unchanged" in lines
    assert "once in 500 observations or less often" in shown
    assert "Failures alone shift by chance in at most 1 % of recordings." in shown
    assert "The first 60 observations, and 60 after each alarm, are the baseline" in shown


def test_the_page_on_two_recordings_says_who_was_compared() -> None:
    shown = page(compared({REFUNDS: samples(60)}, {SUPPORT: samples(50, 1)}))
    assert "✓ support (before: refunds)" in shown
    assert "60 → 50 runs" in shown
    assert "in at most 4 % of cases" in shown
    moved = page(compared({STAGED: samples(60)}, {SUPPORT: samples(50, 1)}))
    assert "support (before: acme / shop · staging)" in moved


def test_a_name_cannot_command_the_terminal() -> None:
    evil = "\x1b[2Jevil"
    runs = [one._replace(path=(evil,)) for one in samples(60, 3)]
    before = {SUPPORT: samples(60)}
    after = {SUPPORT._replace(agent=evil): runs}
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
        compared({REFUNDS: samples(140)}, {SUPPORT: samples(50, 1, longer=4)}), SETTINGS
    )["agents"]
    assert agent["earlier_agent"] == "refunds"
    assert "calls" in {one["feature"] for one in agent["differences"]}


@pytest.mark.parametrize(
    ("kind", "words"), [("version", "version 1 → 2"), ("prompt", "system prompt 1 → 2")]
)
def test_runs_since_a_new_version_or_prompt_are_compared_with_those_before(
    kind: str, words: str
) -> None:
    """Only where either side has 20 runs; what differs follows the change point."""
    versions = [(kind, "1"), (kind, "2")]
    observations = [
        replace(one, fingerprints=(versions[number >= 100],))
        for number, one in enumerate(exchangeable(100) + exchangeable(40, 1, 101, longer=4))
    ]
    runs = {SUPPORT: [sample_like(one) for one in observations]}
    few = {SUPPORT: runs[SUPPORT][:110]}

    (finding,) = detected({SUPPORT: observations}, SETTINGS, {}, samples=runs)
    (point,) = [mark.sentence for mark in finding.change.marks if mark.kind == kind]
    assert f"{words} at observation 101; since then " in point
    assert "tool calls 1.92 → 6.29" in point
    (finding,) = detected({SUPPORT: observations}, SETTINGS, {}, samples=few)
    (point,) = [mark.sentence for mark in finding.change.marks if mark.kind == kind]
    assert "since then" not in point
