"""What makes rows alike: agents do the same again and again, and most metrics need only know how often."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Final

from otel_reliability.model.row import Row

FIELDS: Final = ("task", "input_class", "condition", "branches", "path", "retries", "weight", "arguments_known")
"""What a metric that says `alike` may look at."""

likeness = itemgetter(*map(Row._fields.index, FIELDS))
"""What a row has in these fields: equal for rows that are alike."""

_BLANK: Final = dict.fromkeys(Row._fields)


def like(shared: tuple[Any, ...]) -> Row:
    """A row of that likeness; its other fields are None.

    >>> from otel_reliability.metrics.examples import row
    >>> one, other = row("search", task="refund", tokens=1), row("search", task="refund", tokens=2)
    >>> likeness(one) == likeness(other) == likeness(like(likeness(one)))
    True
    """
    fields: dict[str, Any] = _BLANK | dict(zip(FIELDS, shared, strict=True))
    return Row(**fields)
