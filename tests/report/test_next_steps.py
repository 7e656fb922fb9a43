"""What a report says to do next, and that its first screen holds verdict, reasons and these steps."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from otel_reliability.report.next_steps import MAX_STEPS, next_steps
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.report.build import agent_of, attempts, printed, report, run_spans, runs
from tests.report.test_shift import BREAKS, erring

SCREEN = 40
"""Lines of a terminal."""


@pytest.mark.parametrize("ends", [BREAKS, [False] * 40], ids=["breaks", "healthy"])
def test_the_report_of_an_agent_fits_on_a_screen(tmp_path: Path, ends: list[bool]) -> None:
    found = report(tmp_path, erring(ends))
    brief, whole = (printed(found, details=details) for details in (False, True))

    assert len(brief.splitlines()) <= SCREEN < len(whole.splitlines())
    assert brief.index("STABLE 100/100") < brief.index("Do next")
    assert "otel-reliability report --details FILE" in " ".join(brief.split())


def test_reasons_cost_points_or_are_failures(tmp_path: Path) -> None:
    page = printed(report(tmp_path, runs(*["a"] * 10)), details=False)

    assert "Why" not in page
    assert "0.0" not in page


def test_an_agent_that_broke_leads_to_the_runs_since_then(tmp_path: Path) -> None:
    steps = next_steps(agent_of(tmp_path, erring(BREAKS)), "my.jsonl")

    assert steps[0].endswith(
        "otel-reliability report my.jsonl --agent broken --since 2023-11-14T22:48:20Z"
    )
    assert steps[1].endswith("00000000000000000000000000000028")
    assert len(steps) == MAX_STEPS


def test_a_healthy_agent_leads_to_a_gate_that_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spans = attempts("pay", *[True] * 30)
    file = write_otlp(tmp_path / "spans.jsonl", spans)
    [step] = [one for one in next_steps(agent_of(tmp_path, spans), str(file)) if "gate" in one]

    command = shlex.split(step.partition("otel-reliability ")[2])
    assert call(capsys, *command).code == 0


def test_few_runs_are_said_to_show_little(tmp_path: Path) -> None:
    [step] = [one for one in next_steps(agent_of(tmp_path, runs("a", "a"))) if "more runs" in one]

    assert step == "Record more runs: 2 runs show little; intervals begin at 5"


def test_the_largest_penalty_leads_to_its_remedy(tmp_path: Path) -> None:
    spans = [x for n in range(1, 11) for x in run_spans(n, f"a b{n % 4}" * (n % 3), task="pay")]
    steps = next_steps(agent_of(tmp_path, spans))

    assert any(re.search(r"\(otel-reliability explain \w+\)$", step) for step in steps)


def test_an_agent_that_goes_in_circles_is_not_kept_so(tmp_path: Path) -> None:
    """The same call twice more than needed in each run costs no point."""
    circling = next_steps(agent_of(tmp_path, runs(*["get get get reply"] * 20, success=True)))
    steady = next_steps(agent_of(tmp_path, runs(*["get reply"] * 20, success=True)))

    assert circling[0].endswith("(otel-reliability explain loops)")
    assert not any("Keep it so" in step for step in circling)
    assert any("Keep it so" in step for step in steady)
