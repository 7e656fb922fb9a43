"""The agents of the demo: what their spans come to, read back from the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_reliability.demo.hosting import configured
from otel_reliability.metrics import SPECS
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.recording import Recording, for_report
from otel_reliability.report.build import report_of
from otel_reliability.report.view import ReportView
from tests.cli.command_line import call
from tests.demo.bookshop import Bookshop, write
from tests.demo.fleet import CHANGE, CHARACTERS, FACT_CHECKER, FLEET, RUNS

MOMENT = 1_736_150_400 * 10**9


def wall() -> int:
    """A fixed time, so that the same seed gives the same file."""
    return MOMENT


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> ReportView:
    folder = tmp_path_factory.mktemp("fleet")
    write(Bookshop(7, wall=wall), folder / "spans.jsonl")
    settings = configured(str(folder))
    recording = Recording(for_report(settings, settings.windows[0]))
    recording.read(folder / "spans.jsonl")
    return report_of(recording.close())


def test_each_agent_has_its_character(told: ReportView) -> None:
    cards = {card.key.agent: card for card in told.agents}

    assert set(cards) == set(CHARACTERS)
    assert cards["order_desk"].tier is Tier.STABLE
    assert min(cards.values(), key=lambda card: card.score or 100.0) is cards["researcher"]
    assert "send_email" in [use.tool for use in cards["researcher"].findings.tools if use.rare]
    assert {found.tool for found in cards["importer"].findings.exploding_runs} == {"fetch_record"}
    assert cards["summarizer"].flags == ("token_pressure_high",)
    assert [decision.decision for decision in cards["triage"].findings.decisions] == ["kind"]
    assert (cards["refunds"].passes.pass_hat_k["1"] or 1.0) < 0.75
    assert (cards["refunds"].metrics["calibration"].value or 1.0) < 0.8
    assert (cards["cataloguer"].metrics["loops"].value or 0.0) > 0.5
    assert cards["greeter"].score is None
    assert cards[FACT_CHECKER].runs == RUNS


def test_every_number_of_the_table_has_evidence_in_some_agent(told: ReportView) -> None:
    missing = {
        name
        for card in told.agents
        for name in card.metrics
        if all(other.metrics[name].value is None for other in told.agents)
    }

    assert (
        missing
        - SERIES
        - {"context_turns_left"}  # no conversation of the demo fills its context
        - {"cache_hit_share"}  # no model call of the demo reports cached tokens
        - {spec.name for spec in SPECS if spec.family == "coding"}  # none changes files
        - {"objective", "objective_period", "error_budget_left"}  # none has an objective
        == set()
    )


SERIES = {"tier", "flag", "pass_at_k", "pass_hat_k", "decay_curve"}
"""Several values each: they have evidence where `score` and outcomes have."""


def test_every_value_of_the_recording_is_valid(told: ReportView) -> None:
    assert told.attributes_refused == {}


def test_conversations_are_judged(told: ReportView) -> None:
    (refunds,) = (card for card in told.agents if card.key.agent == "refunds")

    assert len(refunds.sessions) == RUNS // 3
    assert refunds.metrics["mean_session_consistency"].value is not None


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_the_change_half_way_is_told_in_a_sentence(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Bookshop(seed, wall=wall), tmp_path / "spans")
    done = call(capsys, "change", tmp_path / "spans", "--format", "json")
    agents = {agent["agent"]: agent for agent in json.loads(done.out)["agents"]}
    verdicts = {name: agent["verdict"] for name, agent in agents.items()}
    (alarm,) = agents["triage"]["alarms"]

    assert done.code == 0
    assert verdicts == {agent.name: "no result" for agent in FLEET} | {"triage": "changed"}
    assert abs(alarm["signals"][0]["since_observation"] - CHANGE) <= 3
    assert alarm["observation"] < CHANGE + 40
    assert "search_kb is used in 0 % → 100 % of the observations" in agents["triage"]["sentence"]
