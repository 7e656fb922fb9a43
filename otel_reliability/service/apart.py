"""Work that another process does, on a copy of everything as it was when it began.

`fork` gives such a copy within some milliseconds a gigabyte, whoever changes what meanwhile; only what changes is held twice.
The other process has one thread, closes every file and socket it was born with, and ends without a word to the parts that it
has copies of. It yields to all others, in time and for want of memory.
"""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, Self

_NICE: Final = 10
_LONGEST: Final = 3_600
"""Seconds after which the other process ends, whatever holds it up: the one that would end it sooner may be gone."""
_MOST: Final = 4_096
"""Bytes of an answer."""
_ANSWER, _FAILURE = b"+", b"-"


class Done(NamedTuple):
    """What the other process answered; `failure` says why it did not."""

    answer: bytes
    failure: str


class Apart:
    """Work under way in another process. `work` gives a short answer.

    >>> from otel_reliability.service.apart import Apart
    >>> with Apart(lambda: b"done") as work:
    ...     work.wait()
    Done(answer=b'done', failure='')
    """

    def __init__(self, work: Callable[[], bytes]) -> None:
        """Begin. Raises `OSError` where there can be no other process now."""
        self._read, write = os.pipe()
        parent = os.getpid()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DeprecationWarning
                )  # of threads: the child needs none, and takes no lock
                self._pid = os.fork()
        except OSError:
            os.close(self._read)
            os.close(write)
            raise
        if not self._pid:
            _work(work, write, parent)
        os.close(write)
        self._done: Done | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def poll(self) -> Done | None:
        """What came of it; None while it is under way."""
        return self._reap(os.WNOHANG)

    def wait(self) -> Done:
        """What came of it, when it has."""
        done = self._reap(0)
        assert done is not None  # noqa: S101 (without WNOHANG a child is waited for)
        return done

    def end(self) -> None:
        """It is not wanted any more."""
        if self._done is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._reap(0)

    def _reap(self, options: int) -> Done | None:
        if self._done is None:
            try:
                pid, status = os.waitpid(self._pid, options)
            except ChildProcessError:
                pid, status = self._pid, -1
            if pid:
                self._done = self._told(status)
        return self._done

    def _told(self, status: int) -> Done:
        told = os.read(self._read, _MOST + 1)
        os.close(self._read)
        if told[:1] == _ANSWER:
            return Done(told[1:], "")
        why = told[1:].decode(errors="replace") or f"the process that wrote it ended with status {status}"
        return Done(b"", why)


def orphaned(parent: int) -> bool:
    """Whether the process of that id, which began this one, is gone."""
    return os.getppid() != parent


def _work(work: Callable[[], bytes], write: int, parent: int) -> NoReturn:
    """The life of the other process."""
    try:
        gc.disable()  # it would touch, and so copy, every page
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.alarm(_LONGEST)
        os.closerange(3, write)
        os.closerange(write + 1, os.sysconf("SC_OPEN_MAX"))
        with suppress(OSError):
            os.nice(_NICE)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        if not orphaned(parent):
            os.write(write, _ANSWER + work()[:_MOST])
    except BaseException as error:  # noqa: BLE001 (nothing may leave the copy of the service's own stack)
        with suppress(BaseException):
            os.write(write, _FAILURE + f"{type(error).__name__}: {error}".encode()[:_MOST])
    finally:
        os._exit(0)
    raise AssertionError
