"""What users added to the spans of a run, as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from otel_reliability.model.span import Notes

NO_NOTES: Final = Notes()


def merged(notes: Sequence[Notes]) -> Notes:
    """Field by field, the latest wins; decisions and refusals are put together. In the order of the spans' starts.

    >>> merged([Notes(task_id="a", trial=1), Notes(task_id="b")])[:2]
    ('b', 1)
    """
    if len(notes) < 2:
        return notes[0] if notes else NO_NOTES
    found = notes[0]._asdict()
    for note in notes[1:]:
        for field, value in note._asdict().items():
            if field == "branches":
                found[field] = tuple(sorted({**dict(found[field]), **dict(value)}.items()))
            elif field == "refused":
                found[field] += value
            elif value is not None:
                found[field] = value
    return Notes(**found)
