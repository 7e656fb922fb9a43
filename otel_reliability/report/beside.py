"""What a report tells beside its scorecards: whether an agent changed, and how its score went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.model.run import AgentKey
from otel_reliability.report.changes import Finding
from otel_reliability.report.scorecard import Scorecard


def _unknown(card: Scorecard) -> Sequence[float]:
    """No course is known of any agent."""
    return ()


class Beside(NamedTuple):
    """What was found of changes, by agent; and the course of a card's score, the oldest first."""

    changes: Mapping[AgentKey, Finding] = {}
    course_of: Callable[[Scorecard], Sequence[float]] = _unknown


NOTHING: Final = Beside()
