"""Calls that brought nothing: what they cost, and the note where their arguments are unknown."""

from __future__ import annotations

from otel_reliability.metrics._support.exact import ExactSum
from otel_reliability.model.reading import NO_EVIDENCE, Reading
from otel_reliability.model.row import Row


class Waste:
    """Mean cost of wasted tokens, over the runs whose cost and tokens are known.

    >>> from otel_reliability.metrics.examples import row
    >>> waste = Waste()
    >>> waste.count(row(cost=0.5, tokens=1_000), 100, 1)
    >>> waste.value()
    Reading(value=0.05, runs=1, parts=(), note='')
    """

    __slots__ = ("_runs", "_sum")

    def __init__(self) -> None:
        self._runs, self._sum = 0, ExactSum()

    def count(self, row: Row, wasted: int, sign: int) -> None:
        """Add a run (`sign` 1) or remove it (-1)."""
        if row.cost is not None and row.tokens:
            self._runs += sign
            if wasted:
                self._sum.add(row.cost * min(wasted / row.tokens, 1.0), sign)

    def value(self) -> Reading:
        """Return US dollars per run."""
        return Reading(self._sum.mean(self._runs), self._runs) if self._runs else NO_EVIDENCE


def arguments_note(unknown: int, runs: int) -> str:
    """The note of a reading about retries or repeats.

    >>> arguments_note(3, 20), arguments_note(0, 20)
    ('arguments unknown in 3 of 20 runs: their calls are matched by tool alone', '')
    """
    if not unknown:
        return ""
    return f"arguments unknown in {unknown} of {runs} runs: their calls are matched by tool alone"
