"""What many rows have in common, kept once for all of them."""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from otel_reliability.model.row import Row

OWN: Final = frozenset(
    {
        "end_ns", "run_id", "start_ns", "path", "pressure", "tokens", "latency_ns",
        "confidence", "cost", "session_id", "signals",
    }
)  # fmt: skip
"""The fields in which nearly every two rows differ."""
MOST: Final = 8_192
"""Kinds that are remembered at once, for rows to come; rows that are there keep theirs."""

_shared = itemgetter(*(at for at, name in enumerate(Row._fields) if name not in OWN))
_known: dict[tuple[object, ...], Kind] = {}


class Kind:
    """All that a row says, but for what is its own: what `row` has in those fields means nothing.

    Agents do the same things again and again, so their rows are of few kinds, shared by all windows of a process.
    """

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row._replace(
            end_ns=0, run_id="", start_ns=0, path=None, pressure=None, tokens=None, latency_ns=None,
            confidence=None, cost=None, session_id=None, signals=(),
        )  # fmt: skip


def kind_of(row: Row) -> Kind:
    """The kind of a row. What retries cost is hardly ever the same, so rows with some have kinds of their own.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> one, other, third = rows_of("search", "reply", "search reply")
    >>> kind_of(one) is kind_of(other), kind_of(one) is kind_of(third)
    (True, False)
    """
    retries = row.retries
    if retries is not None and retries.number:
        return Kind(row)
    shared = _shared(row)
    found = _known.get(shared)
    if found is None:
        if len(_known) >= MOST:
            _known.clear()
        found = _known[shared] = Kind(row)
    return found
