"""Whether the writer gets on: a thread that hangs is told from one that has much to do, and from a machine that has no time.

The engine's clock alone cannot tell: a large group, or a machine so busy that this process does not run, makes it stand as far
ahead of the writer as a writer that hangs. So looks are counted, not seconds. Where the process does not run, nobody looks.
"""

from __future__ import annotations

from typing import Final

from otel_reliability.service.state import State
from otel_reliability.service.writer import TICK, Writer

LOOK: Final = 1.0
"""Seconds between two looks."""
STUCK: Final = 30
"""Looks in a row that saw the writer behind its time and at the same place, after which it hangs."""
BEHIND: Final = 4 * TICK
"""Seconds that a writer with nothing to do may lie behind: it comes round every `TICK`."""


class Progress:
    """Watches a writer. `look` is called every `LOOK` seconds, from a thread that is not the writer's."""

    def __init__(self, writer: Writer, state: State) -> None:
        self._writer, self._state = writer, state
        self._seen = (writer.beat, state.steps)
        self._silent = 0

    @property
    def stuck(self) -> bool:
        """Whether it hangs."""
        return self._silent >= STUCK

    def look(self) -> None:
        """See whether it has come round, or applied a request, since the last look."""
        seen, behind = (self._writer.beat, self._state.steps), self._state.engine.now() - self._writer.beat
        self._silent = self._silent + 1 if seen == self._seen and behind > BEHIND else 0
        self._seen = seen
