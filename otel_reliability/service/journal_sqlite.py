"""A journal on disk: every request and every moment at which deadlines were met, and now and then all state after them.

State is a function of what came, in its order, and of when. So each entry is written down with its moment before it is
applied, the clock stands still at that moment while it is, and after a restart the same entries at the same moments give the
same state: every run, window, session, alarm and counter. Nothing that leaves the process rests on an entry that is not kept.

A checkpoint is written when entries have outgrown the last one, so that what is written in all stays within a few times of
what came in, and reading it back within seconds. Entries that it covers go bit by bit: the writer waits for none of this.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Final

from otel_reliability.engine import Ceiling
from otel_reliability.model.event import RunEvent
from otel_reliability.service import journal_codec as codec
from otel_reliability.service.checkpoint_store import Point
from otel_reliability.service.checkpoints import Checkpoints
from otel_reliability.service.clock import Clock, Moment
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.journal import Unavailable
from otel_reliability.service.journal_file import Sync, WrongJournal
from otel_reliability.service.journal_store import DAMAGED, REQUEST, TICK, Entry, Store
from otel_reliability.service.state import State
from otel_reliability.service.state_directory import StateDirectory
from otel_reliability.telemetry.guard import Guard
from otel_reliability.windows.fleet import Fleet

_logger = logging.getLogger("otel_reliability.service")

LEAST: Final = 32 * 1024 * 1024
"""Bytes of entries before which no checkpoint is written: reading them takes some seconds."""
SHARE: Final = 0.5
"""Of the last checkpoint's bytes: as many bytes of entries, at least, come before the next one."""
MOST: Final = 4
"""So many times what a checkpoint waits for, and it rests no longer."""
PATIENCE: Final = 1.0
"""Seconds between two attempts to open a journal."""
RETRY: Final = 10.0
"""Seconds after a checkpoint that failed before the next is tried."""
SPARE: Final = 0.02
"""Seconds that the writer spends, each time it meets deadlines, on letting covered entries go, and on waking agents."""

_UNKNOWN: Final = (-1, -1, -1, -1)
"""No number of agents, sessions, open ones of them, and runs and changes to be recorded: something has changed since."""
_APPLY: Final = Guard("applying a request")
_ADVANCE: Final = Guard("meeting deadlines")
_CHECKPOINT: Final = Guard("writing a checkpoint")
_WAKE: Final = Guard("waking an agent")
_RESTORE: Final = Guard("bringing state back")


class Sqlite:
    """Keeps state in a directory. `limit` bounds the bytes of the journal; `least` and `apart` are for tests."""

    keeps_open_runs = True

    def __init__(
        self,
        state: State,
        clock: Clock,
        directory: StateDirectory,
        *,
        sync: Sync = "normal",
        limit: int | None = None,
        least: int = LEAST,
        apart: bool = True,
    ) -> None:
        self.pause = state.settings.assembly.linger
        self.restored = 0
        """Entries that were applied again at the last start."""
        self.used = 0
        """Bytes on disk when an entry was last added: any thread may ask."""
        self.checkpoints = Checkpoints(state, directory.checkpoint, apart=apart)
        self._state, self._clock, self._directory = state, clock, directory
        self._sync: Sync = sync
        self._limit, self._least = limit, least
        self._store: Store | None = None
        self._seq = self._pending = self._begun = self._covered = self._damaged = self._beside = 0
        self._pruned = self._quiet = False
        self._is_whole = True
        self._retry_at = 0.0
        self._last = Moment(0.0, 0)
        self._shape = _UNKNOWN
        self.refused = 0
        """How often nothing could be kept."""
        state.ceilings = self.ceilings
        state.engine.observers.append(self._observe)

    @property
    def lost(self) -> int:
        """What was damaged, and is lost: entries, agents, or the rest of a checkpoint."""
        return self._damaged + self.checkpoints.lost

    def ceilings(self) -> Iterable[Ceiling]:
        """How large the journal is, and may be; and how often that refused requests."""
        if self._store is not None and self._limit is not None:
            yield Ceiling("state_bytes", self.used, self._limit, self.refused)

    # --- At the start -------------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Be where we were. A journal that cannot be read is set aside, with what can be read of it taken over."""
        began = time.monotonic()
        self._last = self._clock.moment()
        with _no_collections():
            troubles = [
                trouble for part in (self._restore_checkpoint, self._repeat_all) if (trouble := self._tried(part))
            ]
        self._clock.resume(self._last.now)
        if self.lost:
            troubles.append(f"{self.lost} of its entries are damaged")
        if troubles:
            self._begin_anew("; ".join(troubles))
            self._tried(self._write_anew)
        self._beside = self.checkpoints.size
        _logger.info(
            "State is back: %d requests since the last checkpoint, %.1f s.", self.restored, time.monotonic() - began
        )

    def _tried(self, part: Callable[[], None]) -> str:
        """Do a part of the restoration, as soon as it can be done (the disk is full, say). Gives what is wrong for ever."""
        while True:
            try:
                part()
            except WrongJournal as error:
                return str(error)
            except Unavailable as error:
                _logger.warning("%s; trying again in %g s", error.detail, PATIENCE)
                time.sleep(PATIENCE)
            except Exception as error:
                if not _RESTORE.stops(error):
                    raise
                return f"it cannot be read here ({type(error).__name__})"
            else:
                return ""

    def _restore_checkpoint(self) -> None:
        try:
            self.checkpoints.restore(self._clock)
        finally:
            point = self.checkpoints.restored
            if point is not None:
                self._last, self._seq, self._covered = point.moment, point.seq, point.seq

    def _repeat_all(self) -> None:
        store = self._store = Store(self._directory.journal, self._sync)
        for entry in store.entries(self._covered):
            if entry.kind == DAMAGED:
                self._damaged += 1
            else:
                self._last, self._seq = entry.moment, entry.seq
                self._repeat(entry)
        if store.damage:
            raise WrongJournal(store.damage)

    def _repeat(self, entry: Entry) -> None:
        with self._clock.at(entry.moment):
            if entry.kind == TICK:
                with _ADVANCE:
                    self._state.advance()
                self._quiet = not self._has_changed()
                return
            self._quiet = False
            self._pending += len(entry.body)
            try:
                request = codec.read(entry.body)
            except codec.Damaged:
                self._damaged += 1
                return
            with _APPLY:
                self._state.apply(request)
            self.restored += 1

    def _begin_anew(self, why: str) -> None:
        """Set the journal aside, and begin another with what is here."""
        self.checkpoints.cancel()
        if self._store is not None:
            self._store.close()
            self._store = None
        name = self._directory.set_aside()
        _logger.error("The journal was set aside as %s: %s. What could be read of it was taken over.", name, why)
        self._store = Store(self._directory.journal, self._sync)
        self._is_whole = False

    def _write_anew(self) -> None:
        """What is here is on no disk: first of all that is written."""
        if not self._is_whole:
            self.checkpoints.write_all(Point(self._seq, self._clock.moment()))
            self._covered, self._pending, self._quiet, self._is_whole = self._seq, 0, False, True

    # --- Requests -----------------------------------------------------------------------------------------------------

    def commit(self, group: Sequence[Decoded]) -> None:
        """Keep these requests, all or none, and stand still at their moment until they are applied."""
        moment = self._clock.moment()
        bodies = [codec.write(request) for request in group]
        entries = [Entry(self._seq + at, REQUEST, moment, body) for at, body in enumerate(bodies, start=1)]
        self._append(entries)
        self._seq += len(entries)
        self._pending += sum(map(len, bodies))
        self._quiet = False
        self._clock.hold(moment)

    def applied(self) -> None:
        """Time goes on."""
        self._clock.release()

    # --- Deadlines ----------------------------------------------------------------------------------------------------

    def advancing(self) -> None:
        """Keep the moment at which deadlines are met. One after which nothing had changed gives way to the next."""
        moment = self._clock.moment()
        seq = self._seq if self._quiet else self._seq + 1
        self._append([Entry(seq, TICK, moment, b"")])
        self._seq = seq
        self._clock.hold(moment)

    def advanced(self, now: float) -> None:
        """Time goes on. What is not urgent is done now, each a little: checkpoints, covered entries, agents asleep."""
        self._clock.release()
        self._quiet = not self._has_changed()
        with _CHECKPOINT:
            try:
                self._tend(now)
            except (Unavailable, WrongJournal, OSError, RecursionError) as error:
                self._pending += self._begun
                self._begun, self._retry_at = 0, now + RETRY
                _logger.warning("No checkpoint could be written; entries are kept until one can: %s", error)
        with _WAKE:
            self._state.engine.read(_wake_some)

    def close(self) -> None:
        """Leave a checkpoint behind, so that the next start is quick."""
        if self._store is not None:
            with _CHECKPOINT:
                try:
                    with _no_collections():
                        self.checkpoints.write(Point(self._seq, self._clock.moment()))
                    self._store.prune(self._seq, 10 * SPARE)
                except (Unavailable, WrongJournal, RecursionError) as error:
                    _logger.warning("No checkpoint could be written at the end; the next start takes longer: %s", error)
            self._store.close()
            self._store = None
        self._directory.release()

    def _tend(self, now: float) -> None:
        """Begin a checkpoint where it is due, see whether one is done, and let entries go that it covers."""
        done = self.checkpoints.finished()
        if done is not None:
            self._covered, self._begun, self._pruned = done.seq, 0, False
            self._beside = self.checkpoints.size
        if self._store is not None and not self._pruned:
            self._pruned = self._store.prune(self._covered, SPARE)
        if not self.checkpoints.under_way and self._is_due() and now >= self._retry_at:
            self._begun, self._pending = self._pending, 0
            self._quiet = False  # the entry that it covers may not be written over
            self.checkpoints.begin(Point(self._seq, self._clock.moment()))

    def _is_due(self) -> bool:
        enough = max(self._least, SHARE * self.checkpoints.written)
        return self._pending >= enough and (self.checkpoints.rested or self._pending >= MOST * enough)

    # --- Writing ------------------------------------------------------------------------------------------------------

    def _append(self, entries: Sequence[Entry]) -> None:
        if self._store is None:
            raise Unavailable("state_unwritable", "the journal is closed")
        try:
            self._write_anew()
            self._check_room(self._store)
            self._store.append(entries)
        except WrongJournal as error:
            self._mend(str(error))
            self._append_anew(entries)
        except Unavailable:
            self.refused += 1
            raise

    def _check_room(self, store: Store) -> None:
        self.used = store.size + self._beside
        if self._limit is not None and self.used >= self._limit:
            raise Unavailable("state_full", f"the journal has reached its limit of {self._limit} bytes")

    def _append_anew(self, entries: Sequence[Entry]) -> None:
        """The same to the journal that has just been begun."""
        try:
            self._write_anew()
            if self._store is not None:
                self._store.append(entries)
        except WrongJournal as error:
            raise Unavailable("state_unwritable", f"no journal can be written ({error})") from None

    def _mend(self, why: str) -> None:
        """The file was damaged while it was in use: all that was in it is still here."""
        try:
            self._begin_anew(why)
        except (OSError, WrongJournal) as error:
            raise Unavailable("state_unwritable", f"no journal can be written ({error})") from None

    def _observe(self, event: RunEvent, now: float) -> None:
        self._shape = _UNKNOWN

    def _has_changed(self) -> bool:
        """Whether anything that is told changed since this was last asked: a run, a session, who is known, what was recorded."""
        engine = self._state.engine
        shape = (len(engine.fleet), len(engine.sessions), engine.sessions.open, engine.waiting)
        changed = shape != self._shape
        self._shape = shape
        return changed


@contextmanager
def _no_collections() -> Generator[None]:
    """Without the collector of cycles: what is made here stays, and looking through it again and again takes most of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _wake_some(fleet: Fleet) -> None:
    """Read back some of the agents that nobody has asked for, so that who asks for all need not wait for all."""
    ends = time.monotonic() + SPARE
    while fleet.asleep and time.monotonic() < ends:
        fleet.wake()
