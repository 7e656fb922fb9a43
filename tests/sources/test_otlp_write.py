from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.span import Evaluation, RawSpan
from otel_reliability.sources.otlp_json import decode_request
from otel_reliability.sources.otlp_write import logs_json, traces_protobuf
from tests.sources.full_schema import decode
from tests.sources.strategies import SPAN_IDS, TEXT, TIMES, TRACE_IDS, plain, raw_spans

SPANS = st.lists(raw_spans(), max_size=4)
EVALUATIONS = st.builds(
    Evaluation,
    TEXT.filter(bool),
    st.floats(allow_nan=False, allow_infinity=False),
    st.none() | TEXT.filter(bool),
    TIMES,
    st.none() | TRACE_IDS,
    st.none() | SPAN_IDS,
    st.none() | TEXT.filter(bool),
)


@given(SPANS)
def test_protobuf_round_trip(spans: list[RawSpan]) -> None:
    batch = decode(traces_protobuf(spans))

    assert plain(batch.spans) == plain(spans)
    assert batch.malformed == []


@given(st.lists(EVALUATIONS, max_size=4))
def test_evaluations_round_trip(evaluations: list[Evaluation]) -> None:
    batch = decode_request(logs_json(evaluations))

    assert batch.evaluations == evaluations
    assert batch.other_logs == 0
