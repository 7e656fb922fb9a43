"""The output of a source, and the rules of well-formed spans and log records that all sources
share.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from otel_reliability.model.outcomes import FIELDS, SUCCESS, BadOutcome, read_outcome
from otel_reliability.model.span import (
    EVALUATION,
    EVALUATION_NAME,
    EXCEPTION,
    EXCEPTION_MESSAGE,
    EXCEPTIONS,
    OUTCOME,
    STATUS_ERROR,
    Evaluation,
    RawEvent,
    RawLog,
    RawSpan,
    SpanId,
    SpanRef,
    TraceId,
)

TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8
NO_TRACE: Final = bytes(TRACE_ID_BYTES)
NO_SPAN: Final = bytes(SPAN_ID_BYTES)
MESSAGES: Final = frozenset(
    {"gen_ai.user.message", "gen_ai.choice", "gen_ai.client.inference.operation.details"}
)
"""Log events of model calls, of which older senders keep what they say in the body."""
MAX_DEPTH: Final = 32
"""Lists and maps in attributes nested deeper than this are None. Protobuf itself refuses a request
from about 45 on.
"""
LATEST_NS: Final = 2**63 - 1
"""The last nanosecond of a signed 64-bit clock (the year 2262); OTLP's unsigned field could say
more, no clock does.
"""

FLAG_REMOTE_KNOWN: Final = 0x100
FLAG_REMOTE: Final = 0x200


OUTCOME_ATTRIBUTES: Final = {
    "run_id": "reliability.run.id",
    "session_id": "gen_ai.conversation.id",
    "key": "reliability.outcome.key",
    SUCCESS: "reliability.run.success",
}
"""Attributes of the log event that reports an outcome, by the field that each of them fills."""


class Reason(enum.StrEnum):
    """Why something that arrived could not be used. The words are counted by, and never change.

    The first five are of one span; SHAPE of anything that is not what its place in a request asks
    for; EVALUATION of one log event; KIND of a whole file; the others of a line, or of the rest of
    a file.
    """

    TRACE_ID = "trace_id"
    SPAN_ID = "span_id"
    PARENT_ID = "parent_id"
    START_TIME = "start_time"
    END_TIME = "end_time"
    SHAPE = "shape"
    EVALUATION = "evaluation"
    JSON = "json"
    ENCODING = "encoding"
    LINE_TOO_LONG = "line_too_long"
    TRUNCATED = "truncated"
    COMPRESSION = "compression"
    KIND = "kind"


class Malformed(NamedTuple):
    """One thing that could not be used. `detail` is for people and holds no content; `place` is
    `file:line` in files.
    """

    reason: Reason
    detail: str
    place: str = ""


@dataclass(slots=True)
class Batch:
    """The content of one request or one line. `logs` are the log events that are no evaluation;
    `other_logs` counts log records that are no event. Of the traces in `complete` nothing follows.
    """

    spans: list[RawSpan] = field(default_factory=list[RawSpan])
    malformed: list[Malformed] = field(default_factory=list[Malformed])
    evaluations: list[Evaluation] = field(default_factory=list[Evaluation])
    logs: list[RawLog] = field(default_factory=list[RawLog])
    other_logs: int = 0
    complete: list[TraceId] = field(default_factory=list[TraceId])


def fault(
    trace_id: TraceId, span_id: SpanId, parent_id: bytes, start_ns: int, end_ns: int
) -> Malformed | None:
    """Return what makes these ids and times unusable, or None. A clock that ran backwards is no
    fault: such a span took no time, and every source gives it the greater of both as its end.

    >>> fault(bytes(15) + b"t", bytes(7) + b"s", b"", 1, 2)
    >>> fault(b"short", bytes(7) + b"s", b"", 1, 2).detail
    'the trace id has 5 bytes, not 16'
    >>> fault(bytes(15) + b"t", bytes(7) + b"s", b"", 1, 0).detail
    'the end time of span 0000000000000073 is absent'
    """
    return (
        _bad_id(Reason.TRACE_ID, "trace id", trace_id, TRACE_ID_BYTES)
        or _bad_id(Reason.SPAN_ID, "span id", span_id, SPAN_ID_BYTES)
        or (
            _bad_length(Reason.PARENT_ID, "parent span id", parent_id, SPAN_ID_BYTES)
            if parent_id
            else None
        )
        or _bad_time(Reason.START_TIME, "start time", start_ns, span_id)
        or _bad_time(Reason.END_TIME, "end time", end_ns, span_id)
    )


def _bad_id(reason: Reason, what: str, value: bytes, size: int) -> Malformed | None:
    if value in (b"", bytes(size)):
        return Malformed(reason, f"the {what} is {'zero' if value else 'absent'}")
    return _bad_length(reason, what, value, size)


def _bad_length(reason: Reason, what: str, value: bytes, size: int) -> Malformed | None:
    return (
        None
        if len(value) == size
        else Malformed(reason, f"the {what} has {len(value)} bytes, not {size}")
    )


def _bad_time(reason: Reason, what: str, value: int, span_id: SpanId) -> Malformed | None:
    if 0 < value <= LATEST_NS:
        return None
    return Malformed(
        reason, f"the {what} of span {span_id.hex()} is {'out of range' if value else 'absent'}"
    )


_SENT_AS_NS: Final = {
    "seconds": 1_000_000_000,
    "milliseconds": 1_000_000,
    "microseconds": 1_000,
}
"""Nanoseconds of each unit in which times are sent by mistake."""
_FIRST_YEARS_NS: Final = 10**18, 5 * 10**18
"""The times, from 2001 to 2128, of which another unit is recognized."""


def in_another_unit(span_id: SpanId, start_ns: int) -> Malformed | None:
    """Return that the times of a span are of now in another unit; None where they are not. As
    nanoseconds they would be of the first weeks of 1970.

    >>> in_another_unit(bytes(7) + b"s", 1_764_300_000_000_000_000)
    >>> in_another_unit(bytes(7) + b"s", 1_764_300_000_000).detail
    'the times of span 0000000000000073 are milliseconds since 1970, not nanoseconds; multiply them
    by 1,000,000'
    """
    first, last = _FIRST_YEARS_NS
    if start_ns >= first:
        return None
    for unit, size in _SENT_AS_NS.items():
        if first <= start_ns * size < last:
            return Malformed(
                Reason.START_TIME,
                f"the times of span {span_id.hex()} are {unit} since 1970, not nanoseconds; "
                f"multiply them by {size:,}",
            )
    return None


def parent(parent_id: bytes) -> SpanId | None:
    """The parent's id; None for a root, which some senders write as eight zero bytes.

    >>> parent(bytes(8))
    """
    return None if parent_id in (b"", NO_SPAN) else parent_id


def parent_remote(flags: int) -> bool | None:
    """Return whether the parent lives in another process: bit 9 of a span's flags, which speaks
    only where bit 8 is set.

    Bit 0 says *sampled* and may be set beside them.

    >>> parent_remote(0x300), parent_remote(0x101), parent_remote(0x201)
    (True, False, None)
    """
    return bool(flags & FLAG_REMOTE) if flags & FLAG_REMOTE_KNOWN else None


def link_ref(trace_id: bytes, span_id: bytes) -> SpanRef | None:
    """Return what a link points to; None where its ids cannot be any span's, which costs the span
    nothing else.

    >>> link_ref(b"", b"")
    """
    whole = len(trace_id) == TRACE_ID_BYTES and len(span_id) == SPAN_ID_BYTES
    return (trace_id, span_id) if whole and trace_id != NO_TRACE and span_id != NO_SPAN else None


def with_status_message(
    events: tuple[RawEvent, ...], status: int, message: object, time_ns: int
) -> tuple[RawEvent, ...]:
    """Return the events of a span, and the message of its status as an exception where it ended in
    an error of which no event reports one.

    >>> with_status_message((), STATUS_ERROR, "it was aborted", 5)[0].name
    'exception'
    >>> with_status_message((), 0, "fine", 5), with_status_message((), STATUS_ERROR, "", 5)
    ((), ())
    """
    if status != STATUS_ERROR or not message or not isinstance(message, str):
        return events
    if any(event.name in EXCEPTIONS for event in events):
        return events
    return (*events, RawEvent(EXCEPTION, time_ns, {EXCEPTION_MESSAGE: message}))


# --- Log records ----------------------------------------------------------------------------------


def take_log(batch: Batch, log: RawLog, body: object) -> None:
    """Put one log record into the batch: as an evaluation, as another event, as malformed, or
    counted.

    The event's name stands in the record's own field, in `event.name`, or, from older senders, is
    the body. Older senders also keep the attributes in the body, as events of messages do. A record
    without a result (an evaluator that failed) is counted with the others.
    """
    named = log.attributes.get("event.name")
    if OUTCOME in (log.name, named, body):
        _take_outcome(batch, log)
        return
    if EVALUATION not in (log.name, named, body):
        name = named or log.name
        if isinstance(name, str) and name and log.time_ns:
            given = log.attributes
            if name in MESSAGES and isinstance(body, dict):
                given = {**cast("dict[str, Any]", body), **given}
            batch.logs.append(replace(log, name=name, attributes=given))
        else:
            batch.other_logs += 1
        return
    facts = (
        {**cast("dict[str, Any]", body), **log.attributes}
        if isinstance(body, dict)
        else log.attributes
    )
    trace_id = _known(log.trace_id, TRACE_ID_BYTES)
    span_id = _known(log.span_id, SPAN_ID_BYTES)
    evaluation = Evaluation.of(facts, log.time_ns, trace_id, span_id)
    if not evaluation.name:
        batch.malformed.append(
            Malformed(Reason.EVALUATION, f"an evaluation without {EVALUATION_NAME}")
        )
    elif evaluation.is_empty:
        batch.other_logs += 1
    else:
        batch.evaluations.append(evaluation)


def _take_outcome(batch: Batch, log: RawLog) -> None:
    """Put an outcome into the batch. What its attributes name comes before the trace in which the
    event was written, which may be another's.
    """
    facts = {field: log.attributes.get(key) for field, key in OUTCOME_ATTRIBUTES.items()}
    if all(facts.get(field) in (None, "") for field in FIELDS):
        facts["trace_id"] = (_known(log.trace_id, TRACE_ID_BYTES) or b"").hex()
    try:
        batch.evaluations.append(read_outcome(facts, log.time_ns))
    except BadOutcome as error:
        batch.malformed.append(Malformed(Reason.EVALUATION, f"an outcome: {error}"))


def _known(identifier: bytes, size: int) -> bytes | None:
    return identifier if len(identifier) == size and identifier.strip(b"\0") else None
