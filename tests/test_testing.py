from __future__ import annotations

from pathlib import Path

import pytest

from otel_reliability.model.row import Retries
from otel_reliability.model.span import (
    Evaluation,
)
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import (
    EPOCH_NS,
    FakeClock,
    at,
    call,
    row,
    run,
    span,
    span_id,
    trace_id,
    write_otlp,
)


def test_clock_stands_until_it_is_wound() -> None:
    """Both faces of the clock move together, and only when told; backwards too."""
    clock = FakeClock(10)

    assert (clock(), clock(), clock.wall()) == (10, 10, EPOCH_NS + 10_000_000_000)
    clock.advance(0.5)
    assert (clock(), clock.wall()) == (10.5, EPOCH_NS + 10_500_000_000)
    clock.advance(-10.5)
    assert (clock(), clock.wall()) == (0, EPOCH_NS)


def test_span_from_small_numbers() -> None:
    """Ids are the numbers given, times seconds after the epoch of the builders."""
    built = span(3, 2, trace=7, start=1.5, end=2, events=[("e", {"k": 1})], links=[(8, 9)], remote=None)

    assert (built.trace_id, built.span_id, built.parent_id) == (trace_id(7), span_id(3), span_id(2))
    assert (built.start_ns, built.end_ns) == (EPOCH_NS + 1_500_000_000, EPOCH_NS + 2_000_000_000)
    assert built.events[0].time_ns == built.start_ns
    assert built.links == ((trace_id(8), span_id(9)),)
    assert built.parent_remote is None
    assert built.resource.service_name == "shop"


def test_fields_by_name() -> None:
    """Any field may be set by its name; an unknown one is an error, not a silent nothing."""
    assert run([], weight=3).weight == 3
    assert row([], task="refund").task == "refund"
    assert call("search", 2, retry=True).start_ns == at(2)
    with pytest.raises((TypeError, ValueError), match="colour"):  # Python 3.13 calls it a TypeError
        run([], colour="red")


def test_rows_are_comparable() -> None:
    """Equal paths of different rows have equal codes, different ones do not."""
    one, same, another = row(["a", "b"], 1), row(["a", "b"], 2), row(["b", "a"], 3)

    assert one.path == same.path
    assert one.path != another.path
    assert one.retries == Retries(0, 0, None, 0, 0, 0)


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz"])
def test_recordings(tmp_path: Path, name: str) -> None:
    """Spans and evaluations are written one request a line, and read back as they were."""
    spans = [span(number, attributes={"k": (number,)}) for number in range(1, 8)]
    judged = [Evaluation("success", 1.0, None, at(1), trace_id(1), span_id(1), None)]
    path = write_otlp(tmp_path / name, spans, judged, batch=3)
    batches = list(read_file(path))

    assert [len(batch.spans) for batch in batches] == [3, 3, 1, 0]
    assert [s for batch in batches for s in batch.spans] == spans
    assert batches[-1].evaluations == judged
