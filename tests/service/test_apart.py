"""Work that another process does, on a copy of everything as it was."""

from __future__ import annotations

import os
import signal
import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest

from otel_reliability.service import apart
from otel_reliability.service.apart import Apart, orphaned
from tests.real.waiting import until


def hang() -> bytes:
    """Never ends."""
    threading.Event().wait()
    return b""


def test_the_other_process_sees_what_was_and_changes_nothing_here() -> None:
    """What it changes is its own; what is changed here meanwhile it does not see."""
    numbers, gate = [1], os.pipe()

    def work() -> bytes:
        numbers.append(2)
        return repr(numbers).encode()

    with Apart(work) as other:
        numbers.append(3)
        assert other.wait() == (b"[1, 2]", "")
        assert other.wait() == other.poll() == (b"[1, 2]", "")
    assert numbers == [1, 3]
    for end in gate:
        os.close(end)


def test_an_exception_is_told() -> None:
    """And goes no further."""

    def work() -> bytes:
        raise ValueError("no room")

    with Apart(work) as other:
        assert other.wait().failure == "ValueError: no room"


def test_a_process_that_is_killed_has_failed() -> None:
    """Whoever killed it."""
    with Apart(hang) as other:
        assert other.poll() is None
        other.end()
        done = other.poll()
    assert done is not None
    assert "ended with status 9" in done.failure


def test_it_ends_at_last_whatever_holds_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where whoever began it is no longer there to end it."""
    monkeypatch.setattr(apart, "_LONGEST", 1)
    with Apart(hang) as other:
        until(lambda: other.poll() is not None, "the other process to end")
        assert other.wait().failure.endswith(f"ended with status {int(signal.SIGALRM)}")


def test_it_holds_no_socket_open() -> None:
    """So that whoever starts this service anew finds its ports free."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    with Apart(hang) as other:
        until(lambda: other.poll() is None, "the other process")
        listening.close()

        def is_free() -> bool:
            with closing(socket.socket()) as probe:
                probe.settimeout(1)
                return probe.connect_ex(("127.0.0.1", port)) != 0

        until(is_free, "the port to be free")


def test_it_does_not_wait_for_locks_that_other_threads_hold() -> None:
    """Their holders are not there; it takes none."""
    lock = threading.Lock()
    lock.acquire()
    with Apart(lambda: b"done") as other:
        assert other.wait().answer == b"done"


def test_an_orphan_knows() -> None:
    """By the process that began it."""
    parent = os.getpid()
    with Apart(lambda: repr((orphaned(parent), orphaned(1_000_000_000))).encode()) as other:
        assert other.wait().answer == b"(False, True)"


def test_where_there_can_be_no_other_process_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing stays open."""

    def fork() -> int:
        raise OSError("no more processes")

    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(OSError, match="no more processes"):
        Apart(lambda: b"")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
