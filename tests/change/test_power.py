"""What is found: streams of recorded runs in which the model changes after 200 observations."""

from __future__ import annotations

import random

import numpy as np
import pytest
from msgspec.structs import replace

from otel_reliability.change.detector import Detector
from otel_reliability.change.recording import evaluate
from otel_reliability.change.result import Result
from otel_reliability.config import ChangeSettings
from otel_reliability.model.observation import Observation
from tests.change.corpora import (
    CLAUDE_AIRLINE,
    GPT_AIRLINE,
    GPT_TELECOM,
    SFT_AIRLINE,
    SFT_TELECOM,
    change,
    recorded_observations,
)
from tests.change.simulate import delays
from tests.change.streams import erring

SETTINGS = ChangeSettings()


@pytest.mark.parametrize(
    ("before", "after", "power", "median"),
    [
        (GPT_AIRLINE, CLAUDE_AIRLINE, 0.95, 15),
        (CLAUDE_AIRLINE, GPT_AIRLINE, 0.95, 15),
        (GPT_TELECOM, SFT_TELECOM, 0.95, 20),
        (SFT_AIRLINE, GPT_AIRLINE, 0.85, 40),
        (GPT_AIRLINE, SFT_AIRLINE, 0.7, 45),
    ],
)
def test_a_new_model_is_found(before: str, after: str, power: float, median: float) -> None:
    """Within 50 observations, at one false alarm in 10 000; a fine-tuned twin of the model takes
    longest.
    """
    pool, earlier, later = change(before, after)
    found = delays(pool, earlier, later, c=SETTINGS.runs_per_false_alarm, streams=200, seed=4)
    assert len(found) >= 195
    assert np.mean(found <= 50) >= power
    assert np.median(found) <= median


@pytest.mark.parametrize(
    ("before", "after", "within", "power"),
    [
        (0, 1, 10, 1),
        (0, 0.5, 20, 0.5),
        (0, 0.5, 50, 0.9),
        (0.05, 1, 20, 0.95),
        (0.05, 0.5, 50, 0.6),
    ],
)
def test_errors_that_begin_after_80_runs_are_found(
    before: float, after: float, within: float, power: float
) -> None:
    """At one false alarm in 10 000 observations."""
    pool = erring(before, after)
    earlier, later = np.split(np.arange(len(pool.values)), 2)
    found = delays(
        pool, earlier, later, c=SETTINGS.runs_per_false_alarm, streams=400, seed=4, at=80
    )
    assert len(found) >= 395
    assert np.mean(found <= within) >= power


def resampled(corpus: str, n: int, seed: int, first: int = 1) -> list[Observation]:
    """So many observations drawn from a recording, under new ids and in the order of new times."""
    dice = random.Random(seed)
    drawn = dice.choices(recorded_observations(corpus), k=n)
    return [
        replace(one, id=f"observation-{i}", start_ns=i, end_ns=i)
        for i, one in enumerate(drawn, first)
    ]


def test_the_sentence_has_what_it_needs() -> None:
    observations = resampled(GPT_TELECOM, 200, seed=1) + resampled(
        SFT_TELECOM, 100, seed=2, first=201
    )
    judgement = evaluate(observations, SETTINGS)
    alarm = judgement.alarms[0]
    assert (judgement.result, judgement.observations) == (Result.CHANGED, 300)
    assert 200 < alarm.observation <= 240
    assert 195 <= alarm.since_observation <= 215
    first = alarm.signals[0]
    assert first.signal == "reply_tokens"
    assert first.before is not None
    assert first.after is not None
    assert (first.before.observations, first.after.observations) == (
        alarm.since_observation - 1,
        alarm.observation - alarm.since_observation + 1,
    )
    assert first.before.median > 1.2 * first.after.median


@pytest.mark.parametrize("corpus", [GPT_AIRLINE, GPT_TELECOM, CLAUDE_AIRLINE])
def test_no_change_is_no_change(corpus: str) -> None:
    assert evaluate(resampled(corpus, 400, seed=3), SETTINGS).result is Result.NO_CHANGE


def test_a_pinned_recording_tells_a_new_model_from_its_first_observations() -> None:
    pinned = resampled(GPT_AIRLINE, 100, seed=5)
    detector = Detector(SETTINGS, pinned)
    alarms = [
        alarm.observation
        for one in resampled(CLAUDE_AIRLINE, 60, seed=6)
        if (alarm := detector.add(one))
    ]
    assert alarms[0] <= 40
    unchanged = Detector(SETTINGS, pinned)
    assert not any(
        unchanged.add(observation) for observation in resampled(GPT_AIRLINE, 200, seed=7)
    )


def test_a_benchmark_in_blocks_gives_no_verdict() -> None:
    """Attempts at one task in a row are no stream of like observations: the reason is said."""
    observations = sorted(resampled(GPT_AIRLINE, 200, seed=9), key=lambda one: (one.task, one.id))
    judgement = evaluate(observations, SETTINGS)
    assert judgement.result is Result.NO_RESULT
    assert "blocks" in judgement.why
