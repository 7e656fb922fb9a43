"""path_similarity: how much of the route do any two runs share? And how unlike the others is one
run?
"""

from __future__ import annotations

from otel_reliability.metrics._support.group_metric import PathMetric
from otel_reliability.metrics._support.latest_pairs import LatestPairs, edit_units, path_code
from otel_reliability.model.reading import NO_DATA, MetricSpec, Reading
from otel_reliability.model.row import Row


class PathSimilarity(PathMetric[LatestPairs[str]]):
    """The mean over all pairs of runs of 1 − Levenshtein distance / longer length of their paths.

    Two empty paths are alike. Where path entropy sees two different paths, this sees how different.
    At most `limits.paths` (1 000) distinct paths a group are compared, the latest; the reading says
    how many runs that left out. State: an integer for each distinct path.

    >>> from otel_reliability.testing import rows_of
    >>> similarity = PathSimilarity()
    >>> usual, again, unusual = rows_of("search read reply", "search reply", "guess")
    >>> for row in (usual, again, unusual):
    ...     similarity.add(row)
    >>> print(f"{similarity.value().value:.4f}", similarity.distance(unusual).value)
    0.2222 1.0
    """

    __slots__ = ()

    spec = MetricSpec(
        name="path_similarity",
        title="Path similarity",
        family="stability",
        direction="higher",
        description=(
            "How much of their order of tool calls two runs of a task share on average: 1 "
            "all of it, 0 nothing."
        ),
        formula="mean over pairs of 1 − Levenshtein / longer length",
        required_data="2 runs of a task with observable tools",
        source="Levenshtein (1966)",
        improve="Inspect the runs unlike the others, and where paths first diverge.",
        interval="comparison",
    )

    def new_group(self) -> LatestPairs[str]:
        return self.pairs(edit_units, path_code)

    def value(self) -> Reading:
        reading = super().value()
        left_out = self.left_out
        note = (
            f"{left_out} earlier runs are left out: only the latest distinct paths of a task "
            "are compared"
        )
        return (
            reading._replace(note=f"{reading.note}; {note}".removeprefix("; "))
            if left_out
            else reading
        )

    def distance(
        self, row: Row, formed: LatestPairs[str] | None = None, *, inside: bool = True
    ) -> Reading:
        """Return path_distance of one run: its mean distance to the *other* runs that are now in
        its group.

        A run unlike the others is worth a look; which of them is wrong, it does not say. No value
        without another run. `formed`: the pairs of its input group. `inside`: the run itself is
        in the window.
        """
        group = self.group_of(row, formed)
        return NO_DATA if group is None else group.distance(row, inside=inside)
