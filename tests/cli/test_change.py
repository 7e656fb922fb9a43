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
    return write_otlp(tmp_path / "same.jsonl", runs(100, first=1_001))


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
    assert "escalate" in [one["names"][0] for one in found[changed]["differences"] if one["names"]]
    assert found[changed]["sentence"].startswith("differs: ")
    assert "(100 → 160 runs, " in found[changed]["sentence"]
    assert found[like]["sentence"].startswith("no difference that these runs could show (100 → 40")
    assert found[like]["detectable"]["share"] < 0.5


def test_change_and_report_say_the_same_of_two_files(
    capsys: pytest.CaptureFixture[str], same: Path, changed: Path
) -> None:
    asked = [
        call(capsys, *command, "--baseline", same, changed, "--format", "json").out
        for command in (("change",), ("report",), ("gate", "--no-change"))
    ]
    change, report, gate = map(json.loads, asked)
    [told] = report["baseline"]["agents"]
    for one in (change["agents"][0], gate["changes"][0]):
        assert one["sentence"] == told["sentence"]
        assert one["differences"] == told["differences"]


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
def test_the_gate_has_no_result_with_fewer_than_20_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, before: int, after: int
) -> None:
    old = write_otlp(tmp_path / "old.jsonl", runs(before))
    new = write_otlp(tmp_path / "new.jsonl", runs(after, also="escalate"))
    done = call(capsys, "gate", new, "--no-change", "--baseline", old)
    assert done.code == 3
    words = " ".join(done.out.split())
    assert f"there are {before} before and {after} after differs: escalate" in words
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
