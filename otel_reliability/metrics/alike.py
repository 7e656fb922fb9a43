"""What makes rows alike: agents do the same again and again, and most metrics need only know how often."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Final

from otel_reliability.model.row import Path, Row

FIELDS: Final = ("task", "input_class", "condition", "branches", "retries", "weight", "arguments_known")
"""What a metric that says `alike` may look at, beside the path."""

likeness = itemgetter(*map(Row._fields.index, FIELDS))
"""What a row has in these fields: equal for rows that are alike."""

_PLACES: Final = tuple(map(Row._fields.index, FIELDS))
_PATH: Final = Row._fields.index("path")
_BLANK: Final = (None,) * len(Row._fields)


def like(shared: tuple[Any, ...], path: Path | None) -> Row:
    """A row of that likeness that took this path; its other fields are None.

    >>> from otel_reliability.metrics.examples import row
    >>> one, other = row("search", task="refund", tokens=1), row("search", task="refund", tokens=2)
    >>> likeness(one) == likeness(other) == likeness(like(likeness(one), one.path))
    True
    """
    fields: list[Any] = [*_BLANK]
    fields[_PATH] = path
    for at, value in zip(_PLACES, shared, strict=True):
        fields[at] = value
    return Row._make(fields)
