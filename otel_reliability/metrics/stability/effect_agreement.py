"""effect_agreement: do the attempts at one task end in the same changes to the world? And how
unlike the others is one run?
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.group_metric import UNGROUPED, TaskMean
from otel_reliability.metrics._support.latest_pairs import ONE, LatestPairs
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row

Effects: TypeAlias = frozenset[tuple[str, bytes | None]]

NONE: Effects = frozenset()


def effects_apart(one: Effects, others: list[Effects]) -> list[int]:
    """Return the Jaccard distance of a set of effects to each other, in units of 2^-52; two empty
    sets are the same.

    Where either side does not know the arguments of a call, the two are compared by the names of
    the tools.

    >>> cancel, refund = ("cancel", b"1"), ("refund", b"2")
    >>> others = [frozenset({cancel}), frozenset({cancel, refund}), frozenset({("cancel", None)})]
    >>> [share / ONE for share in effects_apart(frozenset({cancel}), others)]
    [0.0, 0.5, 0.0]
    """
    known = arguments_known(one)
    return [
        _apart(one, other)
        if known and arguments_known(other)
        else _apart(_tools(one), _tools(other))
        for other in others
    ]


def arguments_known(effects: Effects) -> bool:
    """Return whether the arguments of all these effects are known."""
    return all(arguments is not None for _, arguments in effects)


def _apart(one: frozenset[object], other: frozenset[object]) -> int:
    union = len(one | other)
    return (union - len(one & other)) * ONE // union if union else 0


def _tools(effects: Effects) -> frozenset[object]:
    return frozenset(tool for tool, _ in effects)


def effects_of(row: Row) -> Effects:
    """Return the effects of a run."""
    return NONE if row.effects is None else row.effects


class EffectAgreement(TaskMean[LatestPairs[Effects]]):
    """1 − the mean Jaccard distance of the effects of two attempts at one task, over all pairs;
    tasks weigh as many as runs.

    An *effect* is a call that did not fail and whose tool is classified as changing something, with
    the hash of its arguments without free text (`model.tools`); a read is none. It shows which
    *tasks* an agent is about to fail, without labels: measured on three sets of public runs, a
    run's distance to the other attempts ranks failures with an AUROC of .78 to .89, where the
    distance of paths reaches .61 to .86 (docs/explanation/validation.md). Within a task it does not
    say which attempt is wrong.

    Where arguments are unknown, effects are compared by tool name, and the reading says so. At most
    `limits.paths` (1 000) distinct sets of effects a task are compared, the latest. State: an
    integer for each distinct set of effects.

    >>> from otel_reliability.testing import row
    >>> agreement = EffectAgreement()
    >>> for effects in (
    ...     {("cancel", b"1")},
    ...     {("cancel", b"1")},
    ...     {("cancel", b"2"), ("refund", b"3")},
    ... ):
    ...     agreement.add(row("", task="refund", effects=frozenset(effects)))
    ...     print(agreement.value().value)
    None
    1.0
    0.3333

    References: P. Jaccard, *The distribution of the flora in the alpine zone*, New Phytologist 11,
    1912.
    """

    __slots__ = ("_unknown",)

    spec = MetricSpec(
        name="effect_agreement",
        title="Effect agreement",
        family="stability",
        direction="higher",
        description=(
            "How far two attempts at one task end in the same changes: 1 the same, 0 nothing "
            "in common."
        ),
        formula="1 − mean over pairs of a task of |A △ B| / |A ∪ B|",
        required_data="2 runs of a task with observable tools",
        source="Jaccard (1912)",
        improve="Inspect the tasks of least agreement and the effects in which their attempts "
        "part; if a tool is classified "
        "wrongly, name it in tools.effects or tools.reads.",
        interval="comparison",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._unknown = 0

    def new_group(self) -> LatestPairs[Effects]:
        return self.pairs(effects_apart, effects_of)

    def key(self, row: Row) -> Hashable:
        return UNGROUPED if row.effects is None else super().key(row)

    def count(self, row: Row, sign: int) -> None:
        super().count(row, sign)
        self._unknown += sign * (
            self.key(row) is not UNGROUPED and not arguments_known(effects_of(row))
        )

    def value(self) -> Reading:
        reading = super().value()
        return reading if reading.value is None else reading._replace(note=self._note())

    def distance(self, row: Row) -> Reading:
        """Return effect_distance of one run of the window: its mean distance to the *other* runs of
        its task.
        """
        group = self.group_of(row)
        return NO_DATA if group is None else group.distance(row, inside=True)

    def _note(self) -> str:
        unknown = self._unknown
        left_out = self.left_out
        notes = (
            f"arguments unknown in {unknown} runs: their effects are compared by tool name"
            if unknown
            else "",
            f"{left_out} earlier runs are left out: only the latest distinct effects are compared"
            if left_out
            else "",
        )
        return "; ".join(filter(None, notes))
