from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanContext

from otel_reliability.telemetry import open_spans
from otel_reliability.telemetry.open_spans import OpenSpans

ROOT = SpanContext(7, 1, False)


def begun(*spans: int) -> OpenSpans:
    """Spans that have begun below the root, and the root where it is among them."""
    found = OpenSpans()
    for span_id in spans:
        found.begun.extend((span_id, ROOT))
    return found


def told(spans: OpenSpans) -> set[tuple[int, int | None]]:
    """The spans that are told as open, with their parents."""
    spans.settle()
    found = list(spans.tell())
    assert all(int.from_bytes(trace_id) == 7 for trace_id, _, _ in found)
    return {(int.from_bytes(one), None if parent is None else int.from_bytes(parent)) for _, one, parent in found}


def test_what_is_open_is_told_once() -> None:
    """A root has its own place above it; what ended before anybody asked is not told."""
    spans = begun(1, 2, 3)
    spans.settle()

    assert spans.end(3) is ROOT
    assert told(spans) == {(1, None), (2, 1)}
    assert told(spans) == set()
    assert spans.end(2) is ROOT
    assert spans.end(2) is None
    assert len(spans) == 1


@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "tell"]), st.integers(1, 6)), max_size=40))
def test_every_end_finds_its_beginning(steps: list[tuple[str, int]]) -> None:
    """Whatever is told in between; and what was told is what is open, each span once."""
    spans = begun()
    known, untold = set[int](), set[int]()
    for step, span_id in steps:
        if step == "begin" and span_id not in known:
            spans.begun.extend((span_id, ROOT))
            known.add(span_id)
            untold.add(span_id)
        elif step == "end":
            spans.settle()
            assert (spans.end(span_id) is ROOT) == (span_id in known)
            known.discard(span_id)
            untold.discard(span_id)
        elif step == "tell":
            assert {one for one, _ in told(spans)} == untold
            untold.clear()
    assert len(spans) == len(known)


def test_notes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that begins spans and never ends them does not fill the memory with our notes: the oldest go."""
    monkeypatch.setattr(open_spans, "MAX_OPEN", 10)
    spans = begun(*range(1, 31))
    assert len(spans) == 10
    assert {one for one, _ in told(spans)} == set(range(21, 31))
    for span_id in range(31, 61):
        spans.begun.extend((span_id, ROOT))
        spans.settle()

    assert len(told(spans)) == 10
    assert len(spans) <= 20


def test_a_place_is_found_after_an_interrupt() -> None:
    """A signal handler may raise between the two parts of a note: that one is lost, and no other."""
    spans = begun(2, 3)
    spans.begun.popleft()
    spans.settle()

    assert spans.end(3) is ROOT
