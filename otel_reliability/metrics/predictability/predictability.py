"""predictability (R_Pred): can the agent's own confidence be relied on, in one number?"""

from __future__ import annotations


def predictability(brier_score: float | None) -> float | None:
    """R_Pred = P_brier, which holds calibration and refinement both.

    >>> predictability(0.975)
    0.975
    """
    return brier_score
