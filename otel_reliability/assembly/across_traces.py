"""Runs that concern runs of other traces: how their events change on their way out.

Each stage reads what the one before it gives: runs that continue a response get their conversation
(`response_chains`), by which runs that are reported again are known (`replayed_runs`), of which
one may go on with another (`resumptions`).
"""

from __future__ import annotations

from collections.abc import Iterable

from otel_reliability.assembly.memory import FindFinal
from otel_reliability.assembly.replayed_runs import ReplayedRuns
from otel_reliability.assembly.response_chains import ResponseChains
from otel_reliability.assembly.resumptions import Resumptions
from otel_reliability.config import Settings
from otel_reliability.model.limit import Limit
from otel_reliability.model.run import Run, RunEvent


class AcrossTraces:
    """The stages, in their order. `find_final` finds final runs that a later trace concerns."""

    def __init__(self, settings: Settings, find_final: FindFinal) -> None:
        self._chains = ResponseChains(find_final)
        self._replayed = ReplayedRuns(settings.outcome, find_final)
        self._resumptions = Resumptions(find_final, settings.limits.sessions)
        self._stages = self._chains, self._replayed, self._resumptions

    def pass_on(self, events: Iterable[RunEvent]) -> list[RunEvent]:
        """Return the events as they are emitted."""
        found = list(events)
        for stage in self._stages:
            found = stage.pass_on(found)
        return found

    def restore_final(self, run: Run) -> None:
        """Remember a run that became final before a restart."""
        for stage in self._stages:
            stage.restore_final(run)

    def forget(self, run: Run) -> None:
        """Forget a final run, which no run of a later trace concerns."""
        for stage in self._stages:
            stage.forget(run)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Limits of what is remembered of other traces. A hit is something forgotten: runs that
        concern it are then runs of their own.
        """
        return (self._chains.limit, self._replayed.limit, self._resumptions.limit)
