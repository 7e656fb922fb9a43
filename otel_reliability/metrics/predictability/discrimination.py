"""discrimination (P_auroc): is the agent surer of what succeeds than of what fails?"""

from __future__ import annotations

from collections.abc import Sequence

from otel_reliability.metrics.predictability.samples import Block, RankedSamples, blocks, samples, totals
from otel_reliability.model.reading import MetricSpec


def area(found: Sequence[Block]) -> float | None:
    """The share of (success, failure) pairs in which the success was surer, ties counting half; None for one class.

    >>> area([(0.9, 1, 0), (0.5, 2, 1)])
    0.75
    """
    runs, failures = totals(found)
    successes = runs - failures
    if not failures or not successes:
        return None
    halves, surer = 0, 0
    for _, block, failed in found:
        halves += failed * (2 * surer + block - failed)
        surer += block - failed
    return halves / (2 * successes * failures)


def discrimination(confidences: Sequence[float | None], outcomes: Sequence[float]) -> float | None:
    """P_auroc = (concordant + ½ tied) / (n₊ · n₋), Mann–Whitney, pooled over the attempts of all tasks.

    0.5 is chance, below it the confidence misleads. Attempts without a confidence are left out; an outcome below 1 is a
    failure; None unless there are both.

    >>> discrimination([0.9, 0.8, 0.3], [1, 0, 0]), discrimination([0.9, 0.8], [1, 1])
    (1.0, None)
    """
    return area(blocks(samples(confidences, outcomes)))


class Discrimination(RankedSamples):
    """`discrimination` over the window: O(D) after the sort of its D distinct confidences.

    References: H. B. Mann, D. R. Whitney, *On a Test of Whether one of Two Random Variables is Stochastically Larger than the
    Other* (1947).
    """

    __slots__ = ()

    spec = MetricSpec(
        name="discrimination",
        title="Discrimination (P_auroc)",
        family="predictability",
        direction="higher",
        description="Whether the agent is surer of the runs that succeed than of those that fail; 0.5 is chance.",
        formula="(concordant + ½ tied) / (n₊ · n₋)",
        evidence="a successful and a failed run, both with a confidence",
        source="HAL reliability, evaluation methodology: P_auroc",
        improve="Below 0.5 its confidence misleads: do not route by it. Let a second model evaluate instead.",
        interval="comparison",
    )

    def formula(self, found: Sequence[Block]) -> float | None:
        return area(found)
