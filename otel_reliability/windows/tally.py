"""What came into a window and left it since its metrics were last told, by what makes rows alike."""

from __future__ import annotations

from typing import Any, TypeAlias

from otel_reliability.metrics.alike import likeness
from otel_reliability.metrics.evidence import UNDISTURBED, carried
from otel_reliability.model.row import Path, Row
from otel_reliability.model.run import Outcome

Kinds: TypeAlias = dict[tuple[Any, ...], dict[Path | None, int]]
"""Of each kind of rows and each path: how many more came than left."""

_SUCCESS, _FAILURE = Outcome.SUCCESS, Outcome.FAILURE


class PlainTally:
    """Rows that come and leave, counted.

    `kinds` is what was counted and not taken yet, `number` how many paths it names, of each kind apart. Of all that came and did
    not leave, `runs` are those under no perturbation, `known` those of them whose outcome is known, `passed` the successes.

    >>> from otel_reliability.metrics.examples import rows_of
    >>> one, other = rows_of("search", "reply")
    >>> tally = PlainTally()
    >>> evidence = [tally.note(row, step) for row, step in ((one, 1), (other, 1), (one, -1))]
    >>> tally.number, tally.runs, list(tally.take().values()) == [{other.path: 1}]
    (1, 1, True)
    """

    __slots__ = ("kinds", "known", "number", "passed", "runs")

    def __init__(self) -> None:
        self.kinds: Kinds = {}
        self.number = self.runs = self.known = self.passed = 0

    def take(self, rest: Kinds | None = None) -> Kinds:
        """What was counted; of that, only the rest is from then on."""
        kinds, self.kinds = self.kinds, {} if rest is None else rest
        self.number = sum([len(paths) for paths in self.kinds.values()])
        return kinds

    def note(self, row: Row, step: int) -> int:
        """A row comes (1) or leaves (-1). Gives the evidence that it carries."""
        evidence = carried(row)
        self._count(likeness(row), row.path, step)
        if evidence & UNDISTURBED:
            outcome = row.outcome
            self.runs += step
            self.known += step * (outcome is _SUCCESS or outcome is _FAILURE)
            self.passed += step * (outcome is _SUCCESS)
        return evidence

    def _count(self, kind: tuple[Any, ...], path: Path | None, step: int) -> None:
        paths = self.kinds.get(kind)
        if paths is None:
            paths = self.kinds[kind] = {}
        before = paths.get(path)
        if before is None:
            paths[path] = step
            self.number += 1
        elif before + step:
            paths[path] = before + step
        else:
            del paths[path]
            self.number -= 1
            if not paths:
                del self.kinds[kind]
