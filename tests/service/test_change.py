from __future__ import annotations

from pathlib import Path

import pytest

from otel_reliability.errors import ConfigurationError
from otel_reliability.testing import write_otlp
from tests.cli.command_line import call
from tests.service.running import runs_of, serving
from tests.telemetry.loggers import kept_globally

USUAL = ("search", "reply")
OTHER = ("search", "escalate", "wait", "reply")


def test_a_change_is_counted_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = kept_globally(monkeypatch)
    with serving({"change": {"runs_per_false_alarm": 100}}) as running:
        for spans in (runs_of(80, USUAL), runs_of(40, OTHER, first=81)):
            running.send(spans)
        assert running.sum("agent_reliability_changes_total", gen_ai_agent_name="support") == 1

    (record,) = (one.log_record for one in kept.emitted)
    assert record.attributes["gen_ai.agent.name"] == "support"
    assert 81 < record.attributes["agent.reliability.change.observation"] < 120


def test_a_reference_recording_is_read_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = kept_globally(monkeypatch)
    reference = write_otlp(tmp_path / "reference.jsonl", runs_of(80, USUAL))
    with serving({"change": {"runs_per_false_alarm": 100, "reference": str(reference)}}) as running:
        running.send(runs_of(40, OTHER))

    observations = [
        one.log_record.attributes["agent.reliability.change.observation"] for one in kept.emitted
    ]
    assert observations[0] < 20
    assert len(observations) > 1, (
        "an alarm leads back to the reference, from which the agent still differs"
    )


def test_a_reference_that_is_not_there_keeps_the_service_from_starting() -> None:
    with (
        pytest.raises(ConfigurationError, match=r"^change\.reference: "),
        serving({"change": {"reference": "absent"}}),
    ):
        pass


def test_the_reference_is_checked_without_starting(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spans = [*runs_of(80, USUAL), *runs_of(30, USUAL, agent="short", first=200)]
    reference = write_otlp(tmp_path / "reference.jsonl", spans)
    config = tmp_path / "service.toml"
    config.write_text(f'[change]\nreference = "{reference}"\n')
    done = call(capsys, "serve", "--check", "--config", config)

    assert done.code == 0
    assert f"measured against {reference}: 2 agents" in done.out
    assert "1 of them have fewer than 60 observations there" in done.out

    reference.unlink()
    assert "change.reference: " in call(capsys, "serve", "--check", "--config", config).err
