from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.span import (
    EVALUATED_RESPONSE,
    EVALUATION,
    EVALUATION_LABEL,
    EVALUATION_NAME,
    EVALUATION_SCORE,
    Evaluation,
    RawLog,
    Resource,
)
from otel_reliability.sources.batch import Batch, Reason, take_log
from otel_reliability.sources.otlp_json import decode_request
from otel_reliability.sources.otlp_write import logs_json
from tests.sources.strategies import ATTRIBUTES, SPAN_IDS, TEXT, TIMES, TRACE_IDS, VALUES

TRACE = b"t" * 16
SPAN = b"s" * 8
FACTS = {
    EVALUATION_NAME: "correctness",
    EVALUATION_SCORE: 1,
    EVALUATION_LABEL: "pass",
    EVALUATED_RESPONSE: "resp-1",
}


def taken(
    event_name: Any = EVALUATION, body: object = None, facts: dict[str, Any] | None = None
) -> Batch:
    batch = Batch()
    take_log(
        batch,
        RawLog(event_name, 7, TRACE, SPAN, FACTS if facts is None else facts, "", Resource()),
        body,
    )
    return batch


@pytest.mark.parametrize(
    ("event_name", "body", "facts"),
    [
        (EVALUATION, None, FACTS),
        ("", None, {**FACTS, "event.name": EVALUATION}),
        (None, EVALUATION, FACTS),
        (EVALUATION, FACTS, {}),
        (EVALUATION, {**FACTS, EVALUATION_NAME: "older"}, {EVALUATION_NAME: "correctness"}),
    ],
    ids=["event name", "attribute", "body is the name", "facts in the body", "attributes win"],
)
def test_where_an_evaluation_is_told(event_name: Any, body: object, facts: dict[str, Any]) -> None:
    batch = taken(event_name, body, facts)

    assert batch.evaluations == [Evaluation("correctness", 1.0, "pass", 7, TRACE, SPAN, "resp-1")]


@pytest.mark.parametrize("name", [None, "", 7, ["correctness"]])
def test_evaluation_without_a_name_is_malformed(name: object) -> None:
    batch = taken(facts={**FACTS, EVALUATION_NAME: name})

    assert [problem.reason for problem in batch.malformed] == [Reason.EVALUATION]
    assert batch.evaluations == []


def test_evaluation_that_judges_nothing_is_counted() -> None:
    """An evaluator that failed gives neither score nor label: that is no data, and no fault of the
    sender.
    """
    batch = taken(facts={EVALUATION_NAME: "correctness", "error.type": "timeout"})

    assert (batch.evaluations, batch.malformed, batch.other_logs) == ([], [], 1)


@pytest.mark.parametrize(
    ("told", "score"),
    [
        (0, 0.0),
        (0.25, 0.25),
        ("0.75", 0.75),
        (True, 1.0),
        ("yes", None),
        (float("nan"), None),
        ("inf", None),
        ([1], None),
        (10**400, None),
    ],
)
def test_score(told: object, score: float | None) -> None:
    assert taken(facts={**FACTS, EVALUATION_SCORE: told}).evaluations[0].score == score


@pytest.mark.parametrize(
    ("trace_id", "span_id"), [(b"", b""), (bytes(16), bytes(8)), (b"short", b"short")]
)
def test_ids_that_are_none(trace_id: bytes, span_id: bytes) -> None:
    batch = Batch()
    take_log(batch, RawLog(EVALUATION, 7, trace_id, span_id, FACTS, "", Resource()), None)

    assert (batch.evaluations[0].trace_id, batch.evaluations[0].span_id) == (None, None)


@given(
    VALUES,
    VALUES,
    ATTRIBUTES,
    st.dictionaries(
        st.sampled_from(
            [EVALUATION_NAME, EVALUATION_SCORE, EVALUATION_LABEL, EVALUATED_RESPONSE, "event.name"]
        ),
        VALUES,
    ),
)
def test_every_record_is_accounted_for(
    event_name: Any, body: object, some: dict[str, Any], own: dict[str, Any]
) -> None:
    for name in (event_name, EVALUATION):
        batch = taken(name, body, {**some, **own})

        assert (
            len(batch.evaluations) + len(batch.malformed) + len(batch.logs) + batch.other_logs == 1
        )


NAMES = TEXT.filter(bool)
EVALUATIONS = st.builds(
    Evaluation,
    NAMES,
    st.floats(allow_nan=False, allow_infinity=False),
    st.none() | NAMES,
    TIMES,
    st.none() | TRACE_IDS,
    st.none() | SPAN_IDS,
    st.none() | NAMES,
)


@given(st.lists(EVALUATIONS, max_size=4))
def test_round_trip(evaluations: list[Evaluation]) -> None:
    batch = decode_request(logs_json(evaluations))

    assert (batch.evaluations, batch.other_logs) == (evaluations, 0)
