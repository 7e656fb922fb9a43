"""The sessions of an agent as a sequence of their scores, each worked out when somebody looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, overload

from otel_reliability.model.run import AgentKey
from otel_reliability.windows.session import SessionScores
from otel_reliability.windows.sessions import SessionEvent, Sessions

END: Final = 0
SESSION_ID: Final = 1
"""Where a closed session says when it ended, and its id."""

Kept: TypeAlias = tuple[int, str, SessionEvent | None]
"""When a session ended, its id, and what was told of it where the engine remembers nothing of it any more."""


class ScoredSessions(Sequence[SessionScores]):
    """What explains the scores of a session takes ten times the room of what they are made of, and there may be tens of
    thousands.
    """

    def __init__(self, key: AgentKey, kept: Sequence[Kept], sessions: Sessions) -> None:
        self._key, self._kept, self._sessions = key, kept, sessions

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, at: int) -> SessionScores: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[SessionScores]: ...
    def __getitem__(self, at: int | slice) -> SessionScores | Sequence[SessionScores]:
        if isinstance(at, slice):
            return ScoredSessions(self._key, self._kept[at], self._sessions)
        _, session_id, event = self._kept[at]
        scores = self._sessions.closed(self._key, session_id) if event is None else event.scores
        if scores is None:
            raise KeyError(session_id)
        return scores
