from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from otel_reliability.change.alarm import Alarm
from otel_reliability.change.detector import Status
from otel_reliability.config import ChangeSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.errors import ConfigurationError
from otel_reliability.model.run import AgentKey, CloseReason
from otel_reliability.model.span import Resource
from otel_reliability.reference import pinned_by
from otel_reliability.telemetry import live as lives
from otel_reliability.testing import write_otlp
from tests.report.build import run_spans
from tests.telemetry.meters import Meters


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    return write_otlp(
        tmp_path / "reference.jsonl",
        [one for n in range(70) for one in run_spans(n + 1, "search reply")],
    )


def settings(path: object, **options: Any) -> Settings:
    return Settings(change=ChangeSettings(reference=str(path), **options))


def test_the_observations_of_the_recording_by_agent(reference: Path) -> None:
    (key, observations), *others = pinned_by(settings(reference)).items()
    assert (key.agent, len(observations), others) == ("support", 70, [])
    assert [one.end_ns for one in observations] == sorted(one.end_ns for one in observations)
    assert {one.path for one in observations} == {("search", "reply")}


def test_nothing_is_read_where_nothing_is_asked() -> None:
    assert pinned_by(Settings()) == {}


def test_it_is_read_for_reports_too_whose_engine_looks_for_no_change(reference: Path) -> None:
    """They judge a recording apart."""
    assert pinned_by(settings(reference, enabled=False)) == pinned_by(settings(reference))


@pytest.mark.parametrize("content", [None, "", "{}\n"])
def test_a_reference_that_cannot_be_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "reference.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError) as error:
        pinned_by(settings(path))
    assert (error.value.field, error.value.value) == ("change.reference", str(path))


def test_an_engine_measures_against_it_from_the_first_observation_on(reference: Path) -> None:
    wanted = settings(reference)
    engine = Engine(wanted, clock=lambda: 0.0, wall=None, pinned=pinned_by(wanted))
    for _ in range(2):
        engine.receive(
            [one for n in range(50) for one in run_spans(n + 1, "escalate escalate wait mail")]
        )
        engine.flush(CloseReason.END_OF_INPUT)
        key, alarm = engine.take_changes()[0]
        assert key.agent == "support"
        assert isinstance(alarm, Alarm)
        assert alarm.since_observation <= 2
        assert alarm.observation < 40
        engine.restart()


def watched(engine: Engine) -> AgentKey:
    """The one agent of the engine, whose detector watches already."""
    assert engine.monitor is not None
    (key,) = engine.monitor.keys()
    detector = engine.monitor.detector(key)
    assert detector is not None
    assert detector.evidence().status is Status.WATCHING
    return key


def test_an_engine_measures_an_agent_of_another_environment_against_it(reference: Path) -> None:
    wanted = settings(reference)
    engine = Engine(wanted, clock=lambda: 0.0, wall=None, pinned=pinned_by(wanted))
    there = Resource(service_name="shop", environment="prod", attributes={"service.name": "shop"})
    engine.receive(replace(one, resource=there) for one in run_spans(1, "search reply"))
    engine.flush(CloseReason.FLUSH)
    assert watched(engine).environment == "prod"


def test_in_process_it_is_read_at_the_start(reference: Path) -> None:
    live = lives.live_of(Meters().provider, settings(reference))
    live.engine.receive(run_spans(1, "search reply"))
    live.engine.flush(CloseReason.FLUSH)
    assert watched(live.engine).agent == "support"


def test_in_process_an_absent_one_is_logged_and_the_program_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live = lives.live_of(Meters().provider, settings(tmp_path / "absent"))
    assert live.engine.monitor is not None
    assert "change.reference" in caplog.text
    assert "own first observations" in caplog.text
