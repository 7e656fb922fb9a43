"""reliability (R): the overall number of the evaluation methodology."""

from __future__ import annotations

from otel_reliability.metrics.base import Composite
from otel_reliability.model.reading import MetricSpec


class Reliability(Composite):
    """R: the mean of R_Con, R_Pred and R_Rob, over those that exist. Safety is no part of it.

    A missing dimension silently raises or lowers R, so the reading names those that it was made of.

    >>> from otel_reliability.model.reading import Reading
    >>> Reliability().derive({"consistency": Reading(0.5, 8), "robustness": Reading(1.0, 6)})
    Reading(value=0.75, runs=8, parts=('consistency', 'robustness'), note='')
    """

    spec = MetricSpec(
        name="reliability",
        title="Reliability (R)",
        family="reliability",
        direction="higher",
        description=(
            "The overall number of the evaluation methodology: consistency, predictability "
            "and robustness."
        ),
        formula="mean of R_Con, R_Pred and R_Rob over those that exist",
        required_data="any of its parts",
        source="HAL reliability, evaluation methodology: R",
        improve="Inspect its lowest part first, and which parts are missing.",
        interval="comparison",
    )
    needs = ("consistency", "predictability", "robustness")
