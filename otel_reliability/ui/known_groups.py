"""The groups with alike requests of every agent of an engine: they keep their letters, and the
names that people gave them, from one reading to the next and over restarts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import convert

from otel_reliability.engine import Engine
from otel_reliability.model.changed import ChangedKeys
from otel_reliability.model.record import agent_key
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey
from otel_reliability.read_view import ReadView
from otel_reliability.report.request_groups import Known, learned, members_of, renamed


class KnownGroups:
    """Groups by agent. An agent that expires loses its groups.

    It is read and changed within the engine's turn. A service stores `changes`, and gives them to
    `restore` after a restart.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[AgentKey, Known] = {}
        self._changed = ChangedKeys[AgentKey]()

    def update(self, key: AgentKey, rows: Sequence[Row]) -> Known:
        """Match the runs of an agent's window with its known groups, note what is new, and return
        all of them. It changes what is stored.
        """
        before = self._known.get(key, ())
        known = learned(before, rows)
        if known != before:
            self._put(key, known)
        return known

    def rename(self, key: AgentKey, identity: str, name: str) -> bool:
        """Give the group of a letter a name; return whether there is such a group."""
        known = renamed(self._known.get(key, ()), identity, name)
        if known is not None:
            self._put(key, known)
        return known is not None

    def remove(self, key: AgentKey) -> None:
        """Forget the groups of an agent."""
        if self._known.pop(key, None) is not None:
            self._changed.add(key)

    def runs_of(self, view: ReadView, key: AgentKey, identity: str) -> set[str]:
        """Return the ids of the runs of a group that are in the agent's window now."""
        state = view.agent(key)
        rows = [] if state is None else state.first_window.rows()
        return {row.run_id for row in members_of(rows, self.update(key, rows), identity)}

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield the groups that changed since the last call, by agent; None for an agent that
        expired.
        """
        for key in self._changed.take():
            known = self._known.get(key)
            yield list(key), None if known is None else [list(group) for group in known]

    def restore(self, data: Iterable[tuple[Any, Any]]) -> None:
        """Replace all groups by what `changes` yielded."""
        self._known = {agent_key(key): convert(body, Known) for key, body in data}

    def _put(self, key: AgentKey, known: Known) -> None:
        view = self._engine.view
        if key not in self._known and len(self._known) >= len(view):
            for expired in [one for one in self._known if not view.has_runs(one)]:
                del self._known[expired]
                self._changed.add(expired)
        self._known[key] = known
        self._changed.add(key)
