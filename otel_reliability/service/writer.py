"""The one thread that changes state.

Receivers hand it decoded requests and wait. It reads all that are waiting as a group, has the group
stored, applies it request by request, and only then answers: what was acknowledged is kept. Between
groups it meets the deadlines of runs.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, NamedTuple

from otel_reliability.model.run import CloseReason
from otel_reliability.service.answers import RETRY_LATER, Problem, Refused, overload
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.health import RECOVERING, Readiness
from otel_reliability.service.persistence import Persistence
from otel_reliability.service.state import State
from otel_reliability.state.store import OtherLayout, Unavailable, Unreadable
from otel_reliability.telemetry.guard import Guard

_logger = logging.getLogger("otel_reliability.service")

TICK: Final = 0.25
"""Seconds between two checks of the deadlines."""
LOAD_PAUSE_S: Final = 0.005
"""Seconds between two turns of loading agents after a restart: readers have theirs meanwhile."""
GROUP: Final = 256
"""Requests committed together, at most."""

_RESTORE: Final = Guard("bringing state back")
_APPLY: Final = Guard("applying a request")
_ADVANCE: Final = Guard("meeting deadlines")


class Ack(NamedTuple):
    """A request is committed. `rejected` of its spans or log records were not taken, and `message`
    says why. `reached`: how many closed runs each of its evaluations has reached.
    """

    rejected: int
    message: str
    reached: Sequence[int] = ()


class _Waiting(NamedTuple):
    request: Decoded
    answer: Future[Ack]


class Writer:
    """Applies requests in the order they came, one after the other."""

    def __init__(self, state: State, persistence: Persistence, readiness: Readiness) -> None:
        self._state = state
        self._persistence = persistence
        self._readiness = readiness
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._stopping = False
        self.beat = 0.0
        """The engine's time of the thread's last turn: it has met all deadlines up to then, and
        called all watchers.
        """
        self._next = 0.0
        self._is_loading = True

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Start to load state, then accept requests. The service is not ready until state is
        loaded.
        """
        self._readiness.hold(RECOVERING, "state is being loaded; retry later")
        self._thread.start()

    def commit(self, request: Decoded) -> Future[Ack]:
        """Have a request committed. The future fails with `Refused` where it cannot be; cancelled
        in time, it never is.
        """
        answer: Future[Ack] = Future()
        if self._stopping:
            answer.set_exception(
                overload("stopping", "the service is stopping", retry_after=RETRY_LATER)
            )
        else:
            self._queue.put(_Waiting(request, answer))
        return answer

    def stop(self, patience: float) -> bool:
        """Apply what is queued, close runs that no state keeps, and end. Return False if that took
        too long.
        """
        self._stopping = True
        self._queue.put(None)
        self._thread.join(patience)
        return not self._thread.is_alive()

    # --- On the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._persistence.restore()
        except (OtherLayout, Unreadable, Unavailable, OSError) as error:
            self._refuse_all(str(error))
            return
        except Exception as error:
            if not _RESTORE.stops(error):
                raise
            self._refuse_all("the service failed while it loaded it")
            return
        self.beat = self._state.engine.now()
        self._next = self.beat + self._persistence.pause
        self._readiness.release(RECOVERING)
        while True:
            group, last = self._take()
            if group:
                self._commit(group)
            self._advance()
            if last:
                break
            self._is_loading = self._persistence.load()
        self._end()

    def _refuse_all(self, why: str) -> None:
        """Refuse every request until the end: no state could be loaded. Nothing is stored."""
        detail = f"the state cannot be loaded: {why}"
        _logger.error("The service accepts nothing: %s.", detail)
        self._readiness.hold("state", detail)
        self._readiness.release(RECOVERING)
        last = False
        while not last:
            group, last = self._take()
            for one in group:
                one.answer.set_exception(overload("state", detail, retry_after=RETRY_LATER))

    def _take(self) -> tuple[list[_Waiting], bool]:
        """Return the requests that wait, and whether they are the last; none after a while."""
        group: list[_Waiting] = []
        with suppress(queue.Empty):
            item = self._queue.get(timeout=LOAD_PAUSE_S if self._is_loading else TICK)
            while item is not None:
                if item.answer.set_running_or_notify_cancel():
                    group.append(item)
                if len(group) >= GROUP:
                    return group, False
                item = self._queue.get_nowait()
            return group, True
        return group, False

    def _commit(self, group: Sequence[_Waiting]) -> None:
        try:
            self._persistence.before_apply([one.request for one in group])
        except Unavailable as reason:
            self._readiness.hold("state", reason.detail)
            for one in group:
                one.answer.set_exception(
                    overload(reason.reason, reason.detail, retry_after=RETRY_LATER)
                )
            return
        self._readiness.release("state")
        for one in group:
            self._apply(one)
        self._persistence.after_apply()

    def _apply(self, one: _Waiting) -> None:
        request = one.request
        with _APPLY:
            reached = self._state.apply(request)
            one.answer.set_result(Ack(request.rejected, request.message, reached))
            return
        one.answer.set_exception(
            Refused(Problem.FAULT, "fault", "the service failed on this request")
        )

    def _advance(self) -> None:
        now = self._state.engine.now()
        if now >= self._next:
            self._next = now + TICK
            self._meet_deadlines(now)
        self.beat = now

    def _meet_deadlines(self, now: float) -> None:
        """Store the moment first, as requests are stored before they are applied."""
        try:
            self._persistence.before_deadlines()
            self._readiness.release("state")
            with _ADVANCE:
                self._state.advance()
            self._persistence.after_deadlines(now)
        except Unavailable as reason:
            self._readiness.hold("state", reason.detail)
        except Exception as error:
            if not _ADVANCE.stops(error):
                raise

    def _end(self) -> None:
        with _ADVANCE:
            if not self._persistence.keeps_open_runs:
                self._state.engine.flush(CloseReason.SHUTDOWN)
            self._persistence.close()


CHECK_INTERVAL_S: Final = 1.0
"""Seconds between two checks."""
STUCK_CHECKS: Final = 30
"""Checks in a row that saw the writer late and without progress, after which it counts as hanging.
"""
BEHIND: Final = 4 * TICK
"""Seconds that an idle writer may be late: it takes a turn every `TICK`."""


class WriterProgress:
    """Watches a writer. `check` is called every `CHECK_INTERVAL_S` seconds, from another thread.

    It counts checks, not seconds: if the whole process is paused, or applies one large group, the
    writer is late without hanging.
    """

    def __init__(self, writer: Writer, state: State) -> None:
        self._writer = writer
        self._state = state
        self._seen = (writer.beat, state.steps)
        self._silent = 0

    @property
    def stuck(self) -> bool:
        return self._silent >= STUCK_CHECKS

    def check(self) -> None:
        """Check whether it has taken a turn, or applied a request, since the last check."""
        seen = (self._writer.beat, self._state.steps)
        behind = self._state.engine.now() - self._writer.beat
        self._silent = self._silent + 1 if seen == self._seen and behind > BEHIND else 0
        self._seen = seen
