"""effect_agreement: do the attempts at one task end in the same changes to the world? And how unlike the others is one run?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from otel_reliability.config import Settings
from otel_reliability.metrics._support.groups import TaskMean
from otel_reliability.metrics._support.pairs import ONE, LatestPairs
from otel_reliability.metrics.base import DEFAULTS
from otel_reliability.model.reading import NO_EVIDENCE, MetricSpec, Reading
from otel_reliability.model.row import Row

Effects: TypeAlias = frozenset[tuple[str, bytes | None]]

NONE: Effects = frozenset()


def effects_apart(one: Effects, others: list[Effects]) -> list[int]:
    """The Jaccard distance of a set of effects to each other, in units of 2^-52; two empty sets are the same.

    Where either side does not know the arguments of a call, the two are compared by the names of the tools.

    >>> cancel, refund = ("cancel", b"1"), ("refund", b"2")
    >>> others = [frozenset({cancel}), frozenset({cancel, refund}), frozenset({("cancel", None)})]
    >>> [share / ONE for share in effects_apart(frozenset({cancel}), others)]
    [0.0, 0.5, 0.0]
    """
    known = arguments_known(one)
    return [
        _apart(one, other) if known and arguments_known(other) else _apart(_tools(one), _tools(other))
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
    """1 − the mean Jaccard distance of the effects of two attempts at one task, over all pairs; tasks weigh as many as runs.

    An *effect* is a call that did not fail and whose tool is classified as changing something, with the hash of its arguments
    without free text (`model.tools`); a read is none. 1: every attempt left the same changes, by whatever path. 0: no two
    attempts share one. It shows which *tasks* an agent is about to fail, without labels: measured on three sets of public
    runs, a run's distance to the other attempts ranks failures with an AUROC of .78 to .89, where the distance of paths
    reaches .61 to .86. Within a task it does not say which attempt is wrong.

    No value without a task of 2 runs with observable tools. Where arguments are unknown, effects are compared by tool name,
    and the reading says so. At most `limits.paths` (1 000) distinct sets of effects a task are compared, the latest. State: an
    integer for each distinct set of effects.

    >>> from otel_reliability.metrics.examples import row
    >>> agreement = EffectAgreement()
    >>> for effects in ({("cancel", b"1")}, {("cancel", b"1")}, {("cancel", b"2"), ("refund", b"3")}):
    ...     agreement.add(row("", task="refund", effects=frozenset(effects)))
    ...     print(agreement.value().value)
    None
    1.0
    0.3333

    References: P. Jaccard, *The distribution of the flora in the alpine zone*, New Phytologist 11, 1912; the measurements:
    docs/explanation/validation.md.
    """

    __slots__ = ("_unknown",)

    spec = MetricSpec(
        name="effect_agreement",
        title="Effect agreement",
        family="stability",
        direction="higher",
        description="How far two attempts at one task end in the same changes: 1 the same, 0 nothing in common.",
        formula="1 − mean over pairs of a task of |A △ B| / |A ∪ B|",
        evidence="2 runs of a task with observable tools",
        source="Jaccard (1912)",
        improve="Inspect the tasks of least agreement and the effects in which their attempts part; if a tool is classified "
        "wrongly, name it in tools.effects or tools.reads.",
        interval="comparison",
    )

    def __init__(self, settings: Settings = DEFAULTS) -> None:
        super().__init__(settings)
        self._unknown = 0

    def new_group(self, settings: Settings) -> Callable[[], LatestPairs[Effects]]:
        return lambda: LatestPairs(settings.limits.paths, effects_apart, effects_of, self.rows_with())

    def counts(self, row: Row) -> bool:
        return row.effects is not None and super().counts(row)

    def add(self, row: Row) -> None:
        super().add(row)
        self._unknown += self.counts(row) and not arguments_known(effects_of(row))

    def evict(self, row: Row) -> None:
        super().evict(row)
        self._unknown -= self.counts(row) and not arguments_known(effects_of(row))

    def value(self) -> Reading:
        reading = super().value()
        return reading if reading.value is None else reading._replace(note=self._note())

    def distance(self, row: Row, *, inside: bool = True) -> Reading:
        """effect_distance of one run: its mean distance to the *other* runs of its task that are now in the window.

        `inside`: the run itself is in the window.

        >>> from otel_reliability.metrics.examples import row
        >>> agreement = EffectAgreement()
        >>> one, other = (row("", task="t", effects=frozenset({(tool, b"1")})) for tool in ("cancel", "refund"))
        >>> agreement.add(one)
        >>> agreement.distance(one).value is None
        True
        >>> agreement.add(other)
        >>> agreement.distance(one)
        Reading(value=1.0, runs=1, parts=(), note='')
        """
        group = self.group_of(row)
        found = None if group is None else group.distance(row, inside=inside)
        return NO_EVIDENCE if found is None else Reading(*found)

    def _note(self) -> str:
        told: list[str] = []
        if self._unknown:
            told.append(f"arguments unknown in {self._unknown} runs: their effects are compared by tool name")
        if self.groups.left_out:
            told.append(
                f"{self.groups.left_out} earlier runs are left out: only the latest distinct effects are compared"
            )
        return "; ".join(told)
