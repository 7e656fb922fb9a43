from __future__ import annotations

import random
from pathlib import Path

import pytest

from otel_reliability.model.span import RawSpan
from otel_reliability.sources.otlp_json import read_file
from tests.doors import Outcome, by_exporter, by_file, by_processor, stretched
from tests.shared import SHARED

CAPTURED = [path for path in sorted((SHARED / "corpora" / "captured").glob("*.jsonl.gz")) if ".logs." not in path.name]


@pytest.fixture(
    params=CAPTURED or [pytest.param(None, marks=pytest.mark.skip(reason="../shared/corpora/captured is not here"))],
    ids=lambda path: path.name.removesuffix(".jsonl.gz") if path else "none",
)
def spans(request: pytest.FixtureRequest) -> list[RawSpan]:
    """The spans of a recording of a real framework."""
    path: Path = request.param
    return [span for batch in read_file(path) for span in batch.spans]


def assert_same(left: Outcome, right: Outcome) -> None:
    """The same runs and the same readings."""
    assert left.runs.keys() == right.runs.keys()
    for run_id, run in left.runs.items():
        assert run == right.runs[run_id]
    assert left.readings == right.readings


def test_every_door_sees_the_same_runs(spans: list[RawSpan]) -> None:
    """A recording, and the same spans as a process begins and ends them, give the same runs and readings by every door."""
    read = by_file(spans)

    assert_same(by_processor(spans), read)
    assert_same(by_exporter(spans), read)


def test_order_and_repetition_change_nothing(spans: list[RawSpan]) -> None:
    """Shuffled, and every span twice."""
    read = by_file(spans)
    twice = [*spans, *spans]
    random.Random(1).shuffle(twice)

    assert_same(by_file(twice), read)


def test_real_seconds_and_minutes_change_nothing(spans: list[RawSpan]) -> None:
    """Recorded with models that answer at once, played with models that take their time: deadlines pass, runs stay whole."""
    slow = stretched(spans, 500)
    read = by_file(slow)

    assert_same(by_processor(slow), read)
