"""The fork at which failing and succeeding runs part: the step of the tree of paths after which
they differ most.

The tree begins where runs begin; each step that follows is a branch. At each fork the runs of one
branch are compared with those of its siblings, so they have done the same until then. It is the
largest of many differences, so it describes these runs and promises nothing about others: what is
more than chance, `why` says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import sqrt
from typing import Final, NamedTuple, TypeAlias

Steps: TypeAlias = tuple[str, ...]

MIN_RUNS: Final = 3
"""Runs with a known end that a branch must have, and its siblings together."""
MAX_STEPS: Final = 50
"""Steps of a path that are followed."""


class Ends(NamedTuple):
    """Runs that fail, of those of which it is known."""

    failing: int
    known: int

    @property
    def share(self) -> float | None:
        """The share of them that fail; None without any."""
        return self.failing / self.known if self.known else None


NONE: Final = Ends(0, 0)


class PartingStep(NamedTuple):
    """The fork at which failing and succeeding runs differ most: after `before`, the runs that take
    `step` (None: they end), and those that go on otherwise.
    """

    before: Steps
    step: str | None
    taking: Ends
    others: Ends


def parting_step(paths: Mapping[Steps, Ends]) -> PartingStep | None:
    """Return the fork at which failing and succeeding runs differ most, by the standardized
    difference of two shares; None where no fork has enough runs, or none makes a difference.

    >>> found = parting_step({("look", "pay"): Ends(8, 10), ("look", "ask"): Ends(1, 10)})
    >>> found and (found.before, found.step, found.taking.share)
    (('look',), 'pay', 0.8)
    """
    forks: defaultdict[Steps, defaultdict[str | None, Ends]] = defaultdict(lambda: defaultdict(_no))
    for path, ends in paths.items():
        steps = path[:MAX_STEPS]
        for at in range(len(steps) + 1):
            step = steps[at] if at < len(steps) else None
            forks[steps[:at]][step] = _sum(forks[steps[:at]][step], ends)
    found = [
        PartingStep(before, step, ends, _less(total, ends))
        for before, branches in forks.items()
        if len(branches) > 1
        for total in [_total(branches)]
        for step, ends in branches.items()
        if ends.known >= MIN_RUNS and total.known - ends.known >= MIN_RUNS
    ]
    best = max(found, key=_rank, default=None)
    return best if best is not None and _difference(best) > 0 else None


def _rank(one: PartingStep) -> tuple[float, float, int, tuple[str, ...], str]:
    """Order forks by their difference; of equals, those where more runs fail, then the earliest."""
    return (_difference(one), one.taking.share or 0.0, -len(one.before), one.before, one.step or "")


def _difference(one: PartingStep) -> float:
    """Return |p₁ − p₂| / √(p (1 − p) (1/n₁ + 1/n₂)) with the pooled share p."""
    first = one.taking
    second = one.others
    both = _sum(first, second)
    pooled = both.failing / both.known
    spread = pooled * (1 - pooled) * (1 / first.known + 1 / second.known)
    if not spread:
        return 0.0
    return abs(first.failing / first.known - second.failing / second.known) / sqrt(spread)


def _no() -> Ends:
    return NONE


def _sum(left: Ends, right: Ends) -> Ends:
    return Ends(left.failing + right.failing, left.known + right.known)


def _less(left: Ends, right: Ends) -> Ends:
    return Ends(left.failing - right.failing, left.known - right.known)


def _total(branches: Mapping[str | None, Ends]) -> Ends:
    found = NONE
    for ends in branches.values():
        found = _sum(found, ends)
    return found
