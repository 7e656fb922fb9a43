"""compliance (S_comp): how many runs break no constraint?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def compliance(violations: Iterable[Sequence[str] | None]) -> float | None:
    """S_comp = 1 − violated / judged.

    `violations` holds the severities of each run's violations: empty for a run judged clean, None for one nobody judged,
    which is left out. None where no run was judged.

    >>> compliance([["low", "high"], ["medium"], [], [], None])
    0.5
    """
    judged = [run for run in violations if run is not None]
    return 1.0 - sum(bool(run) for run in judged) / len(judged) if judged else None
