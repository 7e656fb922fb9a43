"""Log events that report a change of a run: `otel_reliability.run`, as another service emits them (`model.record`).

The record is the body, as JSON text: whatever stands between the two services passes text on unchanged.
"""

from __future__ import annotations

import json
from typing import Final

from otel_reliability.model.record import BadRecord, read
from otel_reliability.sources.batch import Batch, Malformed, Reason

LONGEST: Final = 4 * 1024 * 1024
"""Characters of a record: a run of ten thousand spans has fewer."""


def take_record(batch: Batch, body: object) -> None:
    """Put one record into the batch, or say why it cannot be used.

    >>> batch = Batch()
    >>> take_record(batch, '{"version": 2}')
    >>> batch.malformed[0].detail
    'a record of version 2; this service reads version 1'
    """
    try:
        batch.records.append(read(parsed(body)))
    except BadRecord as error:
        batch.malformed.append(Malformed(Reason.RECORD, str(error)))


def parsed(body: object) -> object:
    """The object that the text of a record holds. Raises `BadRecord`."""
    if not isinstance(body, str) or len(body) > LONGEST:
        raise BadRecord("the body of a run record is no JSON text, or too long")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadRecord("the body of a run record is not JSON") from None
