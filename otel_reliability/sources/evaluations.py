"""Log events that evaluate a run: `gen_ai.evaluation.result` → `Evaluation`.

Source: OpenTelemetry GenAI semantic conventions, events. The event is a log record with the context of the evaluated span.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from otel_reliability.model.attributes import bounded
from otel_reliability.model.span import Evaluation, RawLog, Resource
from otel_reliability.sources.batch import SPAN_ID_BYTES, TRACE_ID_BYTES, Batch, Malformed, Reason

EVENT_NAME: Final = "gen_ai.evaluation.result"
_NAME_ATTRIBUTE: Final = "event.name"
NAME: Final = "gen_ai.evaluation.name"
SCORE: Final = "gen_ai.evaluation.score.value"
LABEL: Final = "gen_ai.evaluation.score.label"
RESPONSE: Final = "gen_ai.response.id"


class Log(NamedTuple):
    """One log record as any source reads it. Ids that are no ids are absent: a record may have none."""

    event_name: object
    body: object
    attributes: Mapping[str, Any]
    time_ns: int
    trace_id: bytes
    span_id: bytes
    scope: str = ""
    resource: Resource = Resource()


def take_log(batch: Batch, log: Log) -> None:
    """Put one log record into the batch: as an evaluation, as another event, as malformed, or counted.

    The event's name stands in the record's own field, in `event.name`, or, from older senders, is the body. Older senders
    also keep the attributes in the body. A record without a result (an evaluator that failed) is counted with the others.
    """
    named = log.attributes.get(_NAME_ATTRIBUTE)
    if EVENT_NAME not in (log.event_name, named, log.body):
        name = named or log.event_name
        if isinstance(name, str) and name and log.time_ns:
            batch.logs.append(
                RawLog(name, log.time_ns, log.trace_id, log.span_id, log.attributes, log.scope, log.resource)
            )
        else:
            batch.other_logs += 1
        return
    evaluation = _evaluation(log)
    if not evaluation.name:
        batch.malformed.append(Malformed(Reason.EVALUATION, f"an evaluation without {NAME}"))
    elif evaluation.score is None and evaluation.label is None:
        batch.other_logs += 1
    else:
        batch.evaluations.append(evaluation)


def _evaluation(log: Log) -> Evaluation:
    body: object = log.body
    facts = {**cast("dict[str, Any]", body), **log.attributes} if isinstance(body, dict) else log.attributes
    return Evaluation(
        _text(facts.get(NAME)) or "",
        score(facts.get(SCORE)),
        _text(facts.get(LABEL)),
        log.time_ns,
        _known(log.trace_id, TRACE_ID_BYTES),
        _known(log.span_id, SPAN_ID_BYTES),
        _text(facts.get(RESPONSE)),
    )


def score(value: object) -> float | None:
    """A score as a finite number, whatever type it came in; None where it is none.

    >>> score(1), score("0.5"), score(True), score("good"), score(float("nan"))
    (1.0, 0.5, 1.0, None, None)
    """
    if not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: object) -> str | None:
    return bounded(value) if isinstance(value, str) and value else None


def _known(identifier: bytes, size: int) -> bytes | None:
    return identifier if len(identifier) == size and identifier.strip(b"\0") else None
