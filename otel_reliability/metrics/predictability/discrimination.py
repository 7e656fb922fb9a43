"""discrimination (P_auroc): is the agent surer of what succeeds than of what fails?"""

from __future__ import annotations

from collections.abc import Sequence

from otel_reliability.metrics.predictability.samples import Block, RankedSamples
from otel_reliability.model.reading import MetricSpec


class Discrimination(RankedSamples):
    """P_auroc = (concordant + ½ tied) / (n₊ · n₋), Mann–Whitney, pooled over the attempts of all
    tasks.

    0.5 is chance, below it the confidence misleads. No value unless there are successes and
    failures. The cost is O(D) after the sort of the D distinct confidences.

    >>> Discrimination().formula([(1, 0), (2, 1)], successes=2, failures=1)
    0.75

    References: H. B. Mann, D. R. Whitney, *On a Test of Whether one of Two Random Variables is
    Stochastically Larger than the Other* (1947).
    """

    __slots__ = ()

    spec = MetricSpec(
        name="discrimination",
        title="Discrimination (P_auroc)",
        family="predictability",
        direction="higher",
        description=(
            "Whether the agent is surer of the runs that succeed than of those that fail; "
            "0.5 is chance."
        ),
        formula="(concordant + ½ tied) / (n₊ · n₋)",
        required_data="a successful and a failed run, both with a confidence",
        source="HAL reliability, evaluation methodology: P_auroc",
        improve=(
            "Below 0.5 its confidence misleads: do not route by it. Let a second model "
            "evaluate instead."
        ),
        interval="comparison",
    )

    def formula(self, blocks: Sequence[Block], successes: int, failures: int) -> float | None:
        if not failures or not successes:
            return None
        halves = 0
        surer = 0
        for runs, failed in blocks:
            halves += failed * (2 * surer + runs - failed)
            surer += runs - failed
        return halves / (2 * successes * failures)
