"""branch_instability: does the agent decide alike when the input is alike?"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeAlias

from otel_reliability.metrics._support.group_metric import UNGROUPED, GroupMetric, input_key
from otel_reliability.metrics._support.run_group import RunGroup, Share
from otel_reliability.metrics._support.sums import Counts
from otel_reliability.metrics.base import LIKENESS, UNDISTURBED
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import OTHER_TASK, Row

Decisions: TypeAlias = tuple[tuple[str | None, str], ...]

WHOLE_PATH: Final = None
"""The name of the decision that a run without named branches offers: the path it took."""


class Branches(RunGroup):
    """The decisions of runs with like input: for each decision, how often each branch was taken."""

    __slots__ = ("_branches", "_runs")

    def __init__(self) -> None:
        super().__init__()
        self._branches: dict[str | None, Counts[str]] = {}
        self._runs = Counts[tuple[str | None, ...]]()

    def count(self, row: Row, sign: int) -> None:
        decisions = decisions_of(row)
        for decision, branch in decisions:
            branches = self._branches.setdefault(decision, Counts())
            branches.count(branch, sign)
            if not branches:
                del self._branches[decision]
        self._runs.count(tuple([decision for decision, _ in decisions]), sign)

    def share(self) -> Share | None:
        """Return (deviating decisions, decisions), of those that at least 2 runs took."""
        shared = {decision: taken for decision, taken in self._branches.items() if taken.total >= 2}
        if not shared:
            return None
        total = sum(taken.total for taken in shared.values())
        usual = sum(taken.modal for taken in shared.values())
        runs = sum(
            many for names, many in self._runs.items() if not shared.keys().isdisjoint(names)
        )
        return Share((total - usual, total), 1, runs)


class BranchInstability(GroupMetric[Branches]):
    """Σ (n − modal) / Σ n over all groups of at least 2 runs: the share of decisions that took an
    unusual branch.

    A group is one decision (`reliability.branch.<decision>`) among runs of one input class, else of
    one task, else of alike requests. A run of one of these that names no branch offers its whole
    path as one decision. Where no input is known only named branches count, those of all such runs
    together. Groups of one
    run do not dilute. State: integers, for each distinct branch.

    The source's example, one complaint sent five times:

    >>> from otel_reliability.testing import row
    >>> instability = BranchInstability()
    >>> for branch in ("routine", "routine", "escalate", "routine", "escalate"):
    ...     instability.add(row(input_class="late order", branches={"kind": branch}))
    >>> instability.value().value
    0.4
    """

    __slots__ = ()

    requires = UNDISTURBED | LIKENESS

    spec = MetricSpec(
        name="branch_instability",
        title="Branch instability",
        family="stability",
        direction="lower",
        description=(
            "The share of decisions that took another than the usual branch although the "
            "input was alike."
        ),
        formula="Σ (n − modal) / Σ n",
        required_data="2 runs of alike input, or with the same named branch",
        source="AgentCop, Reliability Layer",
        improve=(
            "Write down the rule of the decision that flips most, and let code take it where "
            "the rule is plain."
        ),
        interval="comparison",
    )

    values = 2

    def new_group(self) -> Branches:
        return Branches()

    def key(self, row: Row) -> Hashable:
        return likeness_of(row) if decisions_of(row) else UNGROUPED

    def value(self) -> Reading:
        totals = self.totals()
        deviating, total = totals.sums
        return Reading(deviating.value / total.value, totals.runs) if total.value else NO_DATA


def likeness_of(row: Row) -> Hashable:
    """Return the key of alike inputs: the input class, else the task, else the input group, else
    nothing (None).

    The runs of tasks beyond the limit have nothing in common.
    """
    if row.input_class is not None:
        return ("class", row.input_class)
    if row.task is None:
        return input_key(row)
    return None if row.task == OTHER_TASK else ("task", row.task)


def decisions_of(row: Row) -> Decisions:
    """Return (decision, branch) of a run: its named branches, else, for a known input, its whole
    path.
    """
    if row.branches or row.path is None or likeness_of(row) is None:
        return row.branches
    return ((WHOLE_PATH, row.path.code),)
