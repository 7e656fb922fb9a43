from __future__ import annotations

from pathlib import Path

from otel_reliability.config import LimitSettings, SessionSettings, Settings
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.recording import Recording, for_report
from otel_reliability.testing import EPOCH_NS, SECOND, write_otlp
from tests.report.build import recorded, runs

SPANS = runs("search reply", "search", "reply search", "", task="refund")


def test_runs_close_at_the_end_of_the_input_and_no_sooner(tmp_path: Path) -> None:
    told: list[Run] = []
    recording = Recording(final=told.extend)
    recording.read(write_otlp(tmp_path / "spans.jsonl", [*SPANS[1:], SPANS[0]], batch=1))

    assert told == []

    recording.close()

    assert [run.path for run in told] == [("search", "reply"), ("search",), ("reply", "search"), ()]
    assert {run.closed_by for run in told} == {CloseReason.END_OF_INPUT}


def test_since_leaves_out_runs_that_ended_before(tmp_path: Path) -> None:
    recording = recorded(tmp_path, SPANS)
    [key] = recording.agents()
    third = EPOCH_NS + 300 * SECOND
    later = recording.window(key, third)
    expected = recorded(tmp_path, SPANS[5:]).window(key)
    assert later is not None
    assert expected is not None

    assert later.readings() == expected.readings()
    assert recording.window(key, third * 2) is None


def test_sessions_end_with_the_recording(tmp_path: Path) -> None:
    later = runs("search", first=3, session="b")
    earlier = runs("search", "reply", session="a", failed="reply")
    recording = recorded(tmp_path, [*later, *earlier])
    sessions = recording.sessions(recording.agents()[0])

    assert [(session.session_id, len(session.runs)) for session in sessions] == [("a", 2), ("b", 1)]
    assert [session.reliability.score for session in sessions if session.reliability] == [0.2, 1.0]
    assert list(recording.sessions(recording.agents()[0], EPOCH_NS + 300 * SECOND)) == list(
        sessions[1:]
    )


def test_no_more_sessions_are_kept_than_the_limit_allows(tmp_path: Path) -> None:
    spans = [
        each for number in range(1, 8) for each in runs("a", first=number, session=f"s{number}")
    ]
    for idle in (0.0, 1_800.0):  # they close after each line, or at the end
        settings = Settings(limits=LimitSettings(sessions=3), sessions=SessionSettings(idle=idle))
        recording = Recording(for_report(settings))
        recording.read(write_otlp(tmp_path / "spans.jsonl", spans, batch=1))
        recording.close()
        assert len(list(recording.sessions(recording.agents()[0]))) == 3
