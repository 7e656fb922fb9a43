"""Change detection on the sessions of a coding agent: a new version reads less before it edits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from otel_reliability.change.detector import Detector
from otel_reliability.change.recording import Observations
from otel_reliability.change.signals import CODING_SIGNALS, SIGNALS
from otel_reliability.config import ChangeSettings
from otel_reliability.recording import Recording
from tests.change.build import exchangeable
from tests.cli.command_line import call

SESSIONS: Final = 140
PROMPTS: Final = 2
OLD: Final = "2.0.34"
NEW: Final = "2.1.90"


class Session:
    """Lines of a session file of Claude Code."""

    def __init__(self, number: int, start: datetime, dice: random.Random) -> None:
        self.name = f"{number:08x}-0000-4000-8000-000000000000"
        self.lines: list[dict[str, Any]] = []
        self._at = start
        self._dice = dice
        self._version = OLD if number < SESSIONS // 2 else NEW

    def add(self, kind: str, message: dict[str, Any]) -> None:
        self._at += timedelta(seconds=self._dice.randint(1, 20))
        self.lines.append(
            {
                "type": kind,
                "uuid": f"{self.name}-{len(self.lines)}",
                "sessionId": self.name,
                "version": self._version,
                "cwd": "/home/me/shop",
                "timestamp": self._at.isoformat().replace("+00:00", "Z"),
                "message": message,
            }
        )

    def prompt(self) -> None:
        is_old = self._version == OLD
        self.add("user", {"role": "user", "content": "go on"})
        for _ in range(max(1, round(self._dice.gauss(6.6 if is_old else 2, 0.7)))):
            self.call("Read", file_path=f"/a/{self._dice.random()}")
        for _ in range(self._dice.randint(1, 3)):
            self.call("Edit", old_string=f"{self._dice.random()}")
        self.call("Bash", command="npm test")

    def call(self, tool: str, **arguments: str) -> None:
        name = f"{self.name}-{len(self.lines)}"
        used = {"type": "tool_use", "id": name, "name": tool, "input": arguments}
        answer = {"id": f"m-{name}", "model": "claude-opus-4-6", "content": [used]}
        usage = {"input_tokens": 100, "output_tokens": 40}
        self.add("assistant", {**answer, "stop_reason": "tool_use", "usage": usage})
        result = {"type": "tool_result", "tool_use_id": name, "content": "x"}
        self.add("user", {"role": "user", "content": [result]})


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Months of sessions, two a day, of a version and the next."""
    folder = tmp_path_factory.mktemp("home") / ".claude" / "projects" / "-home-me-shop"
    folder.mkdir(parents=True)
    dice = random.Random(1)
    for number in range(SESSIONS):
        session = Session(number, datetime(2026, 1, 3, 8, tzinfo=UTC) + number * DAY / 2, dice)
        for _ in range(PROMPTS):
            session.prompt()
        text = "".join(json.dumps(line) + "\n" for line in session.lines)
        (folder / f"{session.name}.jsonl").write_text(text)
    return folder.parents[2]


DAY: Final = timedelta(days=1)


def test_new_version_that_reads_less_is_reported_with_numbers(
    months: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(call(capsys, "change", "--format", "json", months).out)

    (agent,) = found["agents"]
    (point,) = agent["change_points"]
    shifted = {one["feature"]: one for one in point["differences"]}
    assert (point["kind"], point["before"], point["after"]) == ("version", [OLD], [NEW])
    assert point["at"].startswith("2026-02-07")
    assert 6.2 < shifted["reads_before_edit"]["before"]["value"] < 7
    assert 1.6 < shifted["reads_before_edit"]["after"]["value"] < 2.4
    assert "edits" not in shifted
    assert agent["verdict"] == "changed"
    signals = {one["signal"] for one in agent["alarms"][0]["signals"]}
    assert signals & CODING_SIGNALS.keys()
    assert "edits_per_prompt" not in signals


def test_sentence_of_a_new_version_says_what_changed_since_then(
    months: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = " ".join(call(capsys, "change", months).out.split())

    assert f"version {OLD} → {NEW} at observation 71; since then" in shown
    assert "reads before the first edit 6." in shown


def observations_of(folder: Path) -> Iterator[Any]:
    observations = Observations()
    recording = Recording(final=observations.add)
    recording.read_all([folder])
    recording.close()
    for key in observations:
        yield from observations[key]


def test_detector_monitors_coding_signals_of_coding_agents_alone(months: Path) -> None:
    coding = Detector(ChangeSettings())
    for one in observations_of(months):
        coding.add(one)
    other = Detector(ChangeSettings())
    for one in exchangeable(100):
        other.add(one)

    assert coding.to_data()["signals"].keys() == {*SIGNALS, *CODING_SIGNALS}
    assert other.to_data()["signals"].keys() == SIGNALS.keys()
    restored = Detector.from_data(coding.to_data(), ChangeSettings())
    assert restored.to_data() == coding.to_data()


def test_observation_of_another_agent_has_no_coding_signal() -> None:
    for one in exchangeable(5):
        assert {signal.read(one) for signal in CODING_SIGNALS.values()} == {None}
