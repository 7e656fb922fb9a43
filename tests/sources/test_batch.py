from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.sources.batch import LATEST_NS, Reason, fault, link_ref, ordered, parent, parent_remote

TRACE, SPAN = b"t" * 16, b"s" * 8


@pytest.mark.parametrize(
    ("span", "reason", "detail"),
    [
        ((b"", SPAN, b"", 1, 2), Reason.TRACE_ID, "the trace id is absent"),
        ((bytes(16), SPAN, b"", 1, 2), Reason.TRACE_ID, "the trace id is zero"),
        ((bytes(15), SPAN, b"", 1, 2), Reason.TRACE_ID, "the trace id has 15 bytes, not 16"),
        ((TRACE, b"", b"", 1, 2), Reason.SPAN_ID, "the span id is absent"),
        ((TRACE, bytes(8), b"", 1, 2), Reason.SPAN_ID, "the span id is zero"),
        ((TRACE, TRACE, b"", 1, 2), Reason.SPAN_ID, "the span id has 16 bytes, not 8"),
        ((TRACE, SPAN, b"p", 1, 2), Reason.PARENT_ID, "the parent span id has 1 bytes, not 8"),
        ((TRACE, SPAN, bytes(9), 1, 2), Reason.PARENT_ID, "the parent span id has 9 bytes, not 8"),
        ((TRACE, SPAN, b"", 0, 2), Reason.START_TIME, "the start time of span 7373737373737373 is absent"),
        ((TRACE, SPAN, b"", -1, 2), Reason.START_TIME, "the start time of span 7373737373737373 is out of range"),
        ((TRACE, SPAN, b"", 1, 0), Reason.END_TIME, "the end time of span 7373737373737373 is absent"),
        ((TRACE, SPAN, b"", 1, 2**63), Reason.END_TIME, "the end time of span 7373737373737373 is out of range"),
    ],
)
def test_malformed_span(span: tuple[bytes, bytes, bytes, int, int], reason: Reason, detail: str) -> None:
    """A span with unusable ids or times is named by the first of them."""
    problem = fault(*span)

    assert problem is not None
    assert (problem.reason, problem.detail) == (reason, detail)


@pytest.mark.parametrize("parent_id", [b"", bytes(8), SPAN])
def test_sound_span(parent_id: bytes) -> None:
    """Whole ids and the first and last nanosecond of the clock are sound, without a parent and with one."""
    assert fault(TRACE, SPAN, parent_id, 1, LATEST_NS) is None


def test_backward_clock_is_sound() -> None:
    """A span that ends before it starts is kept, and took no time."""
    assert fault(TRACE, SPAN, b"", 5, 3) is None
    assert ordered(5, 3) == 5


@given(st.integers(), st.integers())
def test_ordered_never_ends_before_it_starts(start_ns: int, end_ns: int) -> None:
    """The end is at least the start, and unchanged where it already was."""
    end = ordered(start_ns, end_ns)

    assert end >= start_ns
    assert end in {start_ns, end_ns}


def test_zero_parent_is_none() -> None:
    """Some senders write a root's parent as zero bytes."""
    assert [parent(raw) for raw in (b"", bytes(8), SPAN)] == [None, None, SPAN]


@given(st.integers(0, 2**32 - 1))
def test_remote_is_known_by_bit_8_only(flags: int) -> None:
    """Bit 9 speaks only where bit 8 is set; no other bit matters."""
    expected = bool(flags >> 9 & 1) if flags >> 8 & 1 else None

    assert parent_remote(flags) is expected


@pytest.mark.parametrize(
    ("trace_id", "span_id"), [(b"", b""), (bytes(16), SPAN), (TRACE, bytes(8)), (TRACE, b"short"), (b"short", SPAN)]
)
def test_link_to_no_span(trace_id: bytes, span_id: bytes) -> None:
    """A link whose ids cannot be any span's points nowhere."""
    assert link_ref(trace_id, span_id) is None
    assert link_ref(TRACE, SPAN) == (TRACE, SPAN)
