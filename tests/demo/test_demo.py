from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from otel_reliability.demo import page
from otel_reliability.demo.agreement import agreement
from otel_reliability.demo.fleet import FLEET, LETTERS, RUNS
from otel_reliability.demo.live import SETTINGS, perform_live
from otel_reliability.metrics.stability.tiers import Tier
from otel_reliability.model.run import Run
from otel_reliability.report.recording import Recording, for_report
from otel_reliability.report.report import Report, report_of
from tests.cli.command_line import call


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bool, Path]:
    """The demo's page, whether its doors agreed, and the file it left."""
    path = tmp_path_factory.mktemp("demo") / "spans.jsonl"
    console = Console(file=io.StringIO(), width=80, color_system=None)
    agreed = page.show(path, 7, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue(), agreed, path


@pytest.fixture(scope="module")
def told(shown: tuple[str, bool, Path]) -> Report:
    """The report of the file."""
    recording = Recording(for_report(SETTINGS))
    recording.read(shown[2])
    return report_of(recording.close())


def test_live_metrics_and_scorecard_agree_and_the_page_says_so(shown: tuple[str, bool, Path]) -> None:
    """Every gauge of every agent, and what was counted of its runs."""
    seen, agreed, _ = shown

    assert agreed
    assert "✓ The live metrics and the scorecard agree: " in seen
    assert "Where to look next" in seen
    assert all(agent.name in seen and agent.character in seen for agent in FLEET)


def test_each_agent_has_its_character(told: Report) -> None:
    """What the page says of them is what the numbers say."""
    cards = {card.key.agent: card for card in told.cards}

    assert {name: card.runs for name, card in cards.items()} == {agent.name: agent.runs for agent in FLEET}
    assert cards["order_desk"].tier is Tier.STABLE
    assert min(cards.values(), key=lambda card: card.score or 0.0) is cards["researcher"]
    assert [use.tool for use in cards["researcher"].findings.rare_tools] == ["send_email"]
    assert {found.tool for found in cards["importer"].findings.explosions} == {"fetch_record"}
    assert cards["summarizer"].flags == ("token_pressure_high",)
    assert cards["triage"].findings.decisions[0].decision == "kind"
    assert (cards["refunds"].passes.hat[1].value or 1.0) < 0.6
    assert (cards["refunds"].readings["calibration"].value or 1.0) < 0.7
    assert cards["refunds"].sessions


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_the_change_half_way_is_told_in_a_sentence(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who, since when, and what to look at: the tool that was not used before. Of the others too little is known."""
    perform_live(tmp_path / "spans", seed)
    done = call(capsys, "change", tmp_path / "spans", "--format", "json")
    agents = {agent["agent"]: agent for agent in json.loads(done.out)["agents"]}
    verdicts = {name: agent["verdict"] for name, agent in agents.items()}
    (alarm,) = agents["triage"]["alarms"]

    assert done.code == 0
    assert verdicts == {agent.name: "no verdict" for agent in FLEET} | {"triage": "changed"}
    assert abs(alarm["signals"][0]["since_unit"] - RUNS * LETTERS // 2) <= 3
    assert alarm["unit"] < RUNS * LETTERS // 2 + 40
    assert "search_kb is used in 0 % → 100 % of the units" in agents["triage"]["sentence"]


def test_the_page_says_how_to_ask_for_it(shown: tuple[str, bool, Path]) -> None:
    """Beside the other next steps."""
    assert f"change {shown[2]}" in shown[0]


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    """And another seed another one."""
    one, two, three = (tmp_path / name for name in ("1", "2", "3"))
    perform_live(one, 7)
    perform_live(two, 7)
    perform_live(three, 8)

    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes() != three.read_bytes()


def test_doors_that_disagree_are_found_out(tmp_path: Path) -> None:
    """A number that was changed, one that is missing, one too many: the check can fail."""
    runs: list[Run] = []
    live, _ = perform_live(tmp_path / "spans", 7)
    recording = Recording(for_report(SETTINGS), settled=runs.extend)
    recording.read(tmp_path / "spans")
    recording.close()
    first, second, *_ = (key for key in live if key[0].endswith(".path_entropy"))
    broken = {**live, first: -1.0}
    del broken[second]

    assert agreement(live, recording, runs).differing == []
    assert {(live, recorded is None) for _, live, recorded in agreement(broken, recording, runs).differing} == {
        (-1.0, False),
        (None, False),
    }
    assert agreement(live, recording, runs[1:]).differing


def test_it_runs_from_the_shell(tmp_path: Path) -> None:
    """As `make demo` calls it, in a directory of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "otel_reliability.demo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "all equal." in done.stdout
    assert (tmp_path / "demo-spans.jsonl").stat().st_size > 100_000
