"""Change of work apart from change of the agent."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from otel_reliability.change.detector import Detector
from otel_reliability.change.points import MIX, NEW_REQUESTS, ChangePoint
from otel_reliability.change.sentences import of_point
from otel_reliability.change.work import Work
from otel_reliability.config import ChangeSettings
from otel_reliability.conventions.sketch import sketch_of
from otel_reliability.model.observation import Observation
from tests.shared import shared

Kind = Callable[[random.Random, int], int]
"""The index of the intent of the request of this number, of twenty."""
STREAMS: Final = 6
NEW: Final = 20


@cache
def sketches(name: str = "clinc") -> list[list[bytes]]:
    texts = json.loads(gzip.decompress(shared(f"corpora/inputs/{name}_half.json.gz").read_bytes()))
    return [
        [sketch for text in texts[intent] if (sketch := sketch_of(text)) is not None]
        for intent in sorted(texts)
    ]


def steady(drawn: random.Random, _: int) -> int:
    return drawn.randrange(20)


def swinging(period: int) -> Kind:
    def kind(drawn: random.Random, number: int) -> int:
        second = drawn.random() < 0.5 + 0.5 * math.sin(2 * math.pi * number / period)
        return drawn.randrange(10) + 10 * second

    return kind


def new_from(begin: int) -> Kind:
    """A twenty-first kind makes a sixth of the requests from one on."""
    return lambda drawn, number: (
        NEW if number > begin and drawn.random() < 1 / 6 else drawn.randrange(20)
    )


def observations(seed: int, kind: Kind, number: int, *, shift: int = 0) -> list[Observation]:
    """An agent whose numbers differ from kind to kind of request; after `shift` they are greater."""
    drawn = random.Random(seed)
    intents = drawn.sample(sketches(), NEW + 1)
    found: list[Observation] = []
    for at in range(1, number + 1):
        which = kind(drawn, at)
        later = 5 * bool(shift and at > shift)
        calls, failed, output, largest = [
            round(10 + 5 * (which / 6 + drawn.gauss(0, 1)) + later) for _ in range(4)
        ]
        request = drawn.choice(intents[which])
        one = Observation(
            f"{at}", at, at, None, calls, failed, output, largest, None, request=request
        )
        found.append(one)
    return found


def alarm_at(stream: list[Observation], c: float) -> int:
    detector = Detector(ChangeSettings(runs_per_false_alarm=c))
    return next((at for at, one in enumerate(stream, 1) if detector.add(one)), len(stream))


def notes(seed: int, kind: Kind, number: int, c: float) -> list[ChangePoint]:
    work = Work(c)
    return [
        point
        for at, one in enumerate(observations(seed, kind, number), 1)
        for point in work.add(one, at)[1]
    ]


@pytest.mark.parametrize("period", [100, 1_000])
def test_mix_that_swings_is_no_change_of_the_agent(period: int) -> None:
    streams = [observations(seed, swinging(period), 500) for seed in range(STREAMS)]
    unknown = [[replace(one, request=None) for one in stream] for stream in streams]

    to_alarm = np.mean([alarm_at(stream, 200) for stream in streams])

    assert to_alarm >= 200
    assert np.mean([alarm_at(stream, 200) for stream in unknown]) < to_alarm


def test_change_of_the_agent_is_found_as_soon_as_without_requests() -> None:
    streams = [observations(seed, steady, 320, shift=200) for seed in range(STREAMS)]
    unknown = [[replace(one, request=None) for one in stream] for stream in streams]

    found = np.mean([alarm_at(stream, 10_000) for stream in streams])

    assert found < 260
    assert found <= np.mean([alarm_at(stream, 10_000) for stream in unknown]) + 5


def test_new_kind_of_request_is_noted_once_and_is_no_alarm() -> None:
    found = [notes(seed, new_from(300), 600, 10_000) for seed in range(STREAMS)]

    new = [[one for one in each if one.kind == NEW_REQUESTS] for each in found]
    assert sum(map(bool, found)) >= 0.4 * STREAMS
    assert sum(map(bool, new)) >= STREAMS / 3
    assert all(one.observation > 300 for each in new for one in each)
    assert "of the last" in of_point(next(one for each in new for one in each))


def test_notes_are_as_rare_as_promised_while_the_work_stays_the_same() -> None:
    found = [notes(seed, steady, 1_000, 200) for seed in range(STREAMS)]

    for kind in (NEW_REQUESTS, MIX):
        count = sum(one.kind == kind for each in found for one in each)
        assert count <= STREAMS * 1_000 / 200


def test_another_mix_of_known_kinds_is_noted() -> None:
    found = [
        notes(seed, lambda drawn, at: drawn.randrange(3 if at > 300 else 20), 500, 10_000)
        for seed in range(STREAMS)
    ]

    at = [[one.observation for one in each if one.kind == MIX] for each in found]
    assert sum(any(one > 300 for one in each) for each in at) >= STREAMS / 2
    false = sum(one <= 300 for each in at for one in each)
    assert false <= 2, "promised: one in 10,000, so 0.18 here"


def test_detector_goes_on_with_its_groups_after_a_restart() -> None:
    stream = observations(1, new_from(150), 400)
    settings = ChangeSettings(runs_per_false_alarm=1_000)
    through = Detector(settings)
    first = Detector(settings)
    for one in stream[:180]:
        through.add(one)
        first.add(one)
    second = Detector.from_data(json.loads(json.dumps(first.to_data())), settings)

    for one in stream[180:]:
        assert through.add(one) == second.add(one)

    assert through.to_data() == second.to_data()
    assert through.evidence() == second.evidence()
