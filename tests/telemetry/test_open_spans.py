from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanContext

from otel_reliability.telemetry import span_queue
from otel_reliability.telemetry.span_queue import OpenSpans

ROOT = SpanContext(7, 1, False)


def started(*spans: int) -> OpenSpans:
    """Spans that have started below the root, and the root where it is among them."""
    found = OpenSpans()
    for span_id in spans:
        found.started.extend((span_id, ROOT))
    return found


def reported(spans: OpenSpans) -> set[tuple[int, int | None]]:
    """The spans that are reported as open, with their parents."""
    spans.update()
    found = list(spans.report())
    assert all(int.from_bytes(trace_id) == 7 for trace_id, _, _ in found)
    return {(int.from_bytes(one), None if parent is None else int.from_bytes(parent)) for _, one, parent in found}


@given(st.lists(st.tuples(st.sampled_from(["start", "end", "report"]), st.integers(1, 6)), max_size=40))
def test_each_open_span_is_reported_once(steps: list[tuple[str, int]]) -> None:
    """An ended span finds its start, reported or not; a root has no parent."""
    spans = started()
    known, new = set[int](), set[int]()
    for step, span_id in steps:
        if step == "start" and span_id not in known:
            spans.started.extend((span_id, ROOT))
            known.add(span_id)
            new.add(span_id)
        elif step == "end":
            spans.update()
            assert (spans.end(span_id) is ROOT) == (span_id in known)
            known.discard(span_id)
            new.discard(span_id)
        elif step == "report":
            assert reported(spans) == {(one, None if one == 1 else 1) for one in new}
            new.clear()
    assert len(spans) == len(known)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that never ends its spans does not fill the memory: the oldest are forgotten."""
    monkeypatch.setattr(span_queue, "MAX_OPEN", 10)
    spans = started(*range(1, 31))
    assert len(spans) == 10
    assert {one for one, _ in reported(spans)} == set(range(21, 31))
    for span_id in range(31, 61):
        spans.started.extend((span_id, ROOT))
        spans.update()

    assert len(reported(spans)) == 10
    assert len(spans) <= 20


def test_interrupt_between_two_pops_loses_one_span_only() -> None:
    """The exception of a signal handler, say."""
    spans = started(2, 3)
    spans.started.popleft()
    spans.update()

    assert spans.end(3) is ROOT
