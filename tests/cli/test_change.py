from __future__ import annotations

import json
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from otel_reliability.model.span import RawSpan
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import run_spans

SOON = "change.runs_per_false_alarm=100"


def runs(number: int, *, first: int = 1, also: str = "", agent: str = "support") -> list[RawSpan]:
    """Runs of some steps, now and then one more; and `also` others."""
    return [
        one
        for n in range(first, first + number)
        for one in run_spans(n, f"search {'read ' * (n % 3)}reply {also}", agent=agent)
    ]


@pytest.fixture(name="changed")
def changed_of(tmp_path: Path) -> Path:
    return write_otlp(
        tmp_path / "changed.jsonl", [*runs(100), *runs(60, first=101, also="escalate wait")]
    )


@pytest.fixture(name="same")
def same_of(tmp_path: Path) -> Path:
    return write_otlp(tmp_path / "same.jsonl", runs(100))


def test_a_change_is_a_sentence(capsys: pytest.CaptureFixture[str], changed: Path) -> None:
    done = call(capsys, "change", changed, "--set", SOON)
    words = " ".join(done.out.split())

    assert done.code == 0
    assert "● support" in words
    assert "changed about observation 10" in words
    assert "tool calls 3" in words
    assert "escalate is used in 0 % → 100 % of the observations" in words
    assert "1 agent: 1 changed" in words


def test_two_files_are_compared(
    capsys: pytest.CaptureFixture[str], same: Path, changed: Path, tmp_path: Path
) -> None:
    like = write_otlp(tmp_path / "like.jsonl", runs(40, first=50))
    found = {
        path: json.loads(call(capsys, "change", "--before", same, path, "--format", "json").out)[
            "agents"
        ][0]
        for path in (changed, like)
    }
    assert {path: agent["verdict"] for path, agent in found.items()} == {
        changed: "changed",
        like: "no change",
    }
    assert any(test["differs"] for test in found[changed]["tests"])
    assert found[like]["note"] == "100 observations before, 40 after"


def test_a_reference_recording_is_read(
    capsys: pytest.CaptureFixture[str], same: Path, tmp_path: Path
) -> None:
    short = write_otlp(tmp_path / "short.jsonl", runs(40, also="escalate wait"))
    assert "no result" in call(capsys, "change", short).out
    done = call(capsys, "change", short, "--set", f"change.reference={same}", "--set", SOON)
    assert "changed about observation" in done.out
    assert "measured against the reference recording" in done.out
    done = call(capsys, "change", short, "--set", "change.reference=absent.jsonl")
    assert done.code == 2
    assert "change.reference: 'absent.jsonl' is not a recording that can be read" in done.err


def test_the_gate_fails_on_a_change(
    capsys: pytest.CaptureFixture[str], changed: Path, same: Path
) -> None:
    done = call(capsys, "gate", changed, "--no-change", "--set", SOON)
    assert (done.code, "✗ support: changed about observation" in done.out) == (1, True)
    assert "1 failed" in done.out
    assert call(capsys, "gate", changed, "--no-change", "--baseline", same).code == 1
    assert call(capsys, "gate", same, "--no-change", "--baseline", same).code == 0
    assert call(capsys, "gate", same, "--no-change").code == 0


@pytest.mark.parametrize(("before", "after"), [(19, 40), (40, 19)])
def test_the_gate_misses_evidence_of_fewer_than_20_units(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, before: int, after: int
) -> None:
    old = write_otlp(tmp_path / "old.jsonl", runs(before))
    new = write_otlp(tmp_path / "new.jsonl", runs(after, also="escalate"))
    assert call(capsys, "gate", new, "--no-change", "--baseline", old).code == 3
    assert call(capsys, "gate", new, "--no-change").code == 3


def test_an_agent_of_one_recording_only_is_missing_evidence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, same: Path
) -> None:
    both = write_otlp(tmp_path / "both.jsonl", [*runs(40), *runs(40, first=500, agent="other")])
    gate = ("gate", both, "--no-change", "--baseline", same)
    assert call(capsys, *gate).code == 3
    assert call(capsys, *gate, "--agent", "support").code == 0


def test_programs_read_the_gate_on_change(
    capsys: pytest.CaptureFixture[str], changed: Path, same: Path
) -> None:
    found = json.loads(
        call(capsys, "gate", changed, "--no-change", "--baseline", same, "--format", "json").out
    )
    assert (found["exit_code"], found["verdicts"]) == (1, [])
    assert [(one["agent"], one["state"], one["verdict"]) for one in found["changes"]] == [
        ("support", "failed", "changed")
    ]
    for path, tag in ((changed, "failure"), (same, "system-out")):
        suites = fromstring(
            call(capsys, "gate", path, "--no-change", "--baseline", same, "--format", "junit").out
        )
        (case,) = suites.iter("testcase")
        assert case.get("name") == "no change [support]"
        assert [child.tag for child in case] == [tag]


@pytest.mark.parametrize(
    "demands", [(), ("--baseline", "old.jsonl"), ("--baseline", "x", "--require", "score>=1")]
)
def test_a_gate_without_a_demand_is_bad_usage(
    capsys: pytest.CaptureFixture[str], same: Path, demands: tuple[str, ...]
) -> None:
    assert call(capsys, "gate", same, *demands).code == 2
