"""trajectory_sequence (C_traj_s): do successful attempts take the same steps in the same order?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from otel_reliability.config import Settings
from otel_reliability.metrics._support.means import mean_of_present
from otel_reliability.metrics._support.pairs import Distances, edit_units
from otel_reliability.metrics.consistency.trajectories import TrajectoryMean
from otel_reliability.model.reading import MetricSpec
from otel_reliability.statistics.edits import edit_shares


def trajectory_sequence(tasks: Iterable[Sequence[Sequence[str]]]) -> float | None:
    """C_traj_s: 1 − the mean edit share over all pairs of a task's successful attempts, then the mean over tasks.

    `tasks` holds, for each task, the paths (tool names in order) of its *successful* attempts; empty paths are left out.
    None where no task has two paths.

    >>> round(trajectory_sequence([[["a", "b", "c"], ["c", "b", "a"]]]), 4)
    0.3333
    """
    return mean_of_present(_of_task([path for path in paths if path]) for paths in tasks)


def _of_task(paths: Sequence[Sequence[str]]) -> float | None:
    shares = [share for at, path in enumerate(paths) for share in edit_shares(path, paths[at + 1 :])]
    return 1.0 - math.fsum(shares) / len(shares) if shares else None


class TrajectorySequence(TrajectoryMean):
    """C_traj_s over the window: the successful attempts of a task pair by pair, then the mean over tasks.

    State: an integer for each distinct path. A run that enters or leaves costs one distance to each distinct path of its
    task. At most `limits.paths` distinct paths a task, the latest.

    >>> from otel_reliability.metrics.examples import row
    >>> from otel_reliability.model.run import Outcome
    >>> metric = TrajectorySequence()
    >>> for path in ("search reply", "search reply", "search ask reply close"):
    ...     metric.add(row(path, task="refund", outcome=Outcome.SUCCESS))
    ...     print(metric.value().value)
    None
    1.0
    0.6667

    References: HAL Reliability, *Methodology*, "Trajectory Sequence Consistency"; V. I. Levenshtein, *Binary codes capable of
    correcting deletions, insertions and reversals* (1966).
    """

    __slots__ = ()

    spec = MetricSpec(
        name="trajectory_sequence",
        title="Trajectory sequence consistency (C_traj_s)",
        family="consistency",
        direction="higher",
        description="Whether the successful attempts at a task take the same steps in the same order.",
        formula="mean over tasks of 1 − mean over pairs of Levenshtein / longer length",
        evidence="2 successful runs of one task with tool calls",
        source="HAL reliability, evaluation methodology: C_traj_s",
        improve="See where the paths of successful runs first diverge, and choose one way in the prompt.",
        interval="comparison",
    )

    def distances(self, settings: Settings) -> Distances[str]:
        return edit_units
