"""The sessions of an agent as a sequence of their scores, each worked out when somebody looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, overload

from otel_reliability.windows.session import SessionScores
from otel_reliability.windows.sessions import SessionEvent

END: Final = 0
SESSION_ID: Final = 1
"""Where a closed session says when it ended, and its id."""


class ScoredSessions(Sequence[SessionScores]):
    """What explains the scores of a session takes ten times the room of what they are made of, and there may be tens of
    thousands.
    """

    def __init__(self, events: Sequence[SessionEvent]) -> None:
        self._events = events

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, at: int) -> SessionScores: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[SessionScores]: ...
    def __getitem__(self, at: int | slice) -> SessionScores | Sequence[SessionScores]:
        if isinstance(at, slice):
            return ScoredSessions(self._events[at])
        return self._events[at].scores
