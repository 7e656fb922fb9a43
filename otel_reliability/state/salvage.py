"""Open a state database, and set aside one that is damaged: what can be read of it is copied to a
new one, which takes its place when it is complete. At each step there is the damaged one, or the
complete new one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final

from otel_reliability.model.record import Damaged, pack, unpack_run
from otel_reliability.model.run import AgentKey
from otel_reliability.state.directory import StateDirectory
from otel_reliability.state.store import (
    ORDER,
    OtherLayout,
    Store,
    Sync,
    Unavailable,
    Unreadable,
    copy_table,
    head_for,
)

_logger = logging.getLogger("otel_reliability.service")

RETRY_INTERVAL_S: Final = 1.0
"""Seconds between two attempts to open the database."""


class StoreOpener:
    """Opens the database of a directory. `now`: seconds of the service's clock."""

    def __init__(self, directory: StateDirectory, sync: Sync, now: Callable[[], float]) -> None:
        self._directory = directory
        self._sync: Sync = sync
        self._now = now

    def open(self) -> Store:
        """Open the database, as soon as it can be opened; set one aside that cannot be read. Raise
        `OtherLayout` for one of another version.
        """
        self._directory.finish_replacing()
        if self._directory.lacks_journal:
            _logger.error(
                "%s-wal is missing, although the service did not end in good order: what it stored "
                "last is lost. Restore all files of the directory together.",
                self._directory.database,
            )
        while True:
            try:
                store = Store(self._directory.database, self._sync)
                if store.damage:
                    store = self.salvaged(store)
                self._directory.use()
            except Unreadable as error:
                self._replace_unreadable(str(error))
            except Unavailable as error:
                _logger.warning("%s; trying again in %g s.", error.detail, RETRY_INTERVAL_S)
                time.sleep(RETRY_INTERVAL_S)
            else:
                return store

    def salvaged(self, damaged: Store) -> Store:
        """Return a new database with everything that can be read of a damaged one, which is set
        aside when the new one is complete. Close the damaged one.
        """
        self._directory.discard_salvage()
        with closing(Store(self._directory.salvage, self._sync)) as store:
            self._copy(damaged, store)
        name = self._directory.replace_database()
        damaged.close()
        _logger.error(
            "The state was set aside as %s: %s. What could be read of it was kept.",
            name,
            damaged.damage,
        )
        return Store(self._directory.database, self._sync)

    def _replace_unreadable(self, why: str) -> None:
        """Set a database aside that cannot be opened."""
        self._directory.discard_salvage()
        Store(self._directory.salvage, self._sync).close()
        kept = self._salvaged_without_head()
        name = self._directory.replace_database()
        _logger.error(
            "The state was set aside as %s: %s. %s",
            name,
            why,
            "What could be read of it was kept." if kept else "The service begins without it.",
        )

    def _salvaged_without_head(self) -> bool:
        """Copy what can be read of a database that cannot be opened, as when its first page is
        lost, to the salvage, which is empty. Return whether that was anything.
        """
        page = head_for(self._directory.database, self._directory.salvage)
        try:
            with (
                self._directory.headed(page) as path,
                closing(Store(path)) as damaged,
                closing(Store(self._directory.salvage, self._sync)) as store,
            ):
                self._copy(damaged, store)
                return any(
                    True for _ in store.rows("SELECT 1 FROM run UNION SELECT 1 FROM arrival")
                )
        except (Unreadable, OtherLayout):
            return False

    def _copy(self, damaged: Store, store: Store) -> None:
        for table in ORDER:
            copy_table(damaged, table, store)
        self._name_agents(store)

    def _name_agents(self, store: Store) -> None:
        """Add the agents whose rows were lost: their runs name them."""
        question = (
            "SELECT agent, body FROM run WHERE agent NOT IN (SELECT id FROM agent) ORDER BY seq"
        )
        found: dict[int, AgentKey] = {}
        for agent, body in store.rows(question):
            with suppress(Damaged):
                found[agent] = unpack_run(body).key
        seen = next((now for (now,) in store.rows("SELECT now FROM saved")), self._now())
        rows = [(agent, pack(key), seen) for agent, key in found.items()]
        store.transact([("INSERT OR IGNORE INTO agent VALUES (?, ?, ?)", rows)])
