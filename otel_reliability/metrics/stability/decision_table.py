"""Which named decisions flip although the input is alike, and in what shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from otel_reliability.metrics.stability.branch_instability import likeness_of
from otel_reliability.model.row import BASELINE, Row


class Decision(NamedTuple):
    """One decision among runs of like input: the branches taken, the most frequent first, each with its runs.

    `kind` is `class` or `task`, `name` which one; both are empty where no run names its input.
    """

    kind: str
    name: str
    decision: str
    branches: Mapping[str, int]

    @property
    def deviating(self) -> int:
        """Number of runs that did not take the usual branch."""
        return sum(self.branches.values()) - max(self.branches.values())


def decision_table(rows: Iterable[Row]) -> list[Decision]:
    """The named decisions (`reliability.branch.<decision>`) that flipped, the one with most deviating runs first.

    >>> from otel_reliability.metrics.examples import row
    >>> branches = ("routine", "routine", "escalate", "routine", "escalate")
    >>> decision_table(row(input_class="late order", branches={"triage": branch}) for branch in branches)
    [Decision(kind='class', name='late order', decision='triage', branches={'routine': 3, 'escalate': 2})]
    """
    taken: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        if row.condition == BASELINE:
            kind, name = _likeness(row)
            for decision, branch in row.branches:
                taken.setdefault((kind, name, decision), Counter())[branch] += 1
    found = (Decision(*group, _by_runs(branches)) for group, branches in taken.items() if len(branches) > 1)
    return sorted(found, key=lambda one: (-one.deviating, one[:3]))


def _likeness(row: Row) -> tuple[str, str]:
    match likeness_of(row):
        case (str(kind), str(name)):
            return kind, name
        case _:
            return "", ""


def _by_runs(branches: Counter[str]) -> dict[str, int]:
    return dict(sorted(branches.items(), key=lambda branch: (-branch[1], branch[0])))
