from __future__ import annotations

from otel_reliability.change import sentences
from otel_reliability.change.detector import Detector
from otel_reliability.change.recording import evaluate
from otel_reliability.config import ChangeSettings
from tests.change.build import exchangeable, observation

SETTINGS = ChangeSettings(runs_per_false_alarm=500)


def test_a_change_is_told_with_when_and_what() -> None:
    observations = exchangeable(120) + [observation(n, ("refund",) * 9) for n in range(121, 150)]
    text = sentences.of_recording(evaluate(observations, SETTINGS))
    assert text.startswith("changed about observation 12")
    assert "1970-01-01 00:02 UTC" in text
    assert "tool calls" in text
    assert "refund is used in 0 %" in text


def test_a_detector_says_what_it_waits_for() -> None:
    detector = Detector(SETTINGS)
    assert (
        sentences.of_evidence(detector.evidence(), 100)
        == "collecting a baseline: 60 more observations"
    )
    for one in exchangeable(90):
        detector.add(one)
    watching = sentences.of_evidence(detector.evidence(), 100)
    assert watching.startswith(
        f"{sentences.UNCHANGED} in 90 observations: the evidence for one is "
    )
    short = sentences.of_evidence(Detector(SETTINGS, exchangeable(20)).evidence(), 100)
    assert short == "no result: the pinned reference has fewer than 60 observations"


def test_of_many_alarms_the_first_are_told() -> None:
    judgement = evaluate(exchangeable(200, 1, longer=4), SETTINGS, exchangeable(100))
    text = sentences.of_recording(judgement)
    more = len(judgement.alarms) - sentences.MAX_ALARMS_SHOWN
    last = judgement.alarms[-1].observation
    assert text.count("changed about observation") == sentences.MAX_ALARMS_SHOWN
    assert text.endswith(f"and {more} more, the last at observation {last}")
