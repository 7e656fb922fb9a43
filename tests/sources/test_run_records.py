from __future__ import annotations

from collections.abc import Mapping

import pytest

from otel_reliability.model.event import RunChange
from otel_reliability.model.record import EVENT_NAME, RunRecord, write
from otel_reliability.sources.batch import Batch, Reason
from otel_reliability.sources.evaluations import Log, take_log
from otel_reliability.testing import run

RECORD = RunRecord(RunChange.CLOSED, run(["search"])._replace(tool_calls=()), 7)


def taken(body: object, event_name: object = EVENT_NAME, attributes: Mapping[str, str] | None = None) -> Batch:
    """The batch after one log record."""
    batch = Batch()
    take_log(batch, Log(event_name, body, attributes or {}, 7, b"", b""))
    return batch


def test_a_run_is_read_from_a_log_event() -> None:
    """The record is the body; the event's name stands in its own field or, from older senders, in `event.name`."""
    body = write(RECORD).decode()

    assert taken(body).records == [RECORD]
    assert taken(body, "", {"event.name": EVENT_NAME}).records == [RECORD]


def test_a_log_of_another_name_tells_no_run() -> None:
    """The name decides, not what the body looks like."""
    batch = taken(write(RECORD).decode(), "something.else")

    assert (batch.records, [log.name for log in batch.logs]) == ([], ["something.else"])


@pytest.mark.parametrize("body", [None, 7, "", "{", "[" * 100_000, '{"version": 1}', {"version": 1}, "x" * 5_000_000])
def test_what_is_no_record_is_malformed(body: object) -> None:
    """A body that tells no run is counted by its reason, and its neighbours live."""
    batch = taken(body)

    assert [problem.reason for problem in batch.malformed] == [Reason.RECORD]
    assert not batch.records
