"""What makes rows alike: agents do the same again and again, and most metrics need only know how often."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Final

from otel_reliability.model.row import Path, Row

FIELDS: Final = ("task", "input_class", "condition", "branches", "retries", "weight", "arguments_known")
"""What a metric that says `alike` may look at, beside the path."""

likeness = itemgetter(*map(Row._fields.index, FIELDS))
"""What a row has in these fields: equal for rows that are alike."""

_BLANK: Final = dict.fromkeys(Row._fields)


def like(shared: tuple[Any, ...], path: Path | None) -> Row:
    """A row of that likeness that took this path; its other fields are None.

    >>> from otel_reliability.metrics.examples import row
    >>> one, other = row("search", task="refund", tokens=1), row("search", task="refund", tokens=2)
    >>> likeness(one) == likeness(other) == likeness(like(likeness(one), one.path))
    True
    """
    fields: dict[str, Any] = {**_BLANK, **dict(zip(FIELDS, shared, strict=True)), "path": path}
    return Row(**fields)
