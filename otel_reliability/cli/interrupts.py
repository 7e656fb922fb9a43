"""SIGTERM as Ctrl-C, for commands that run until they are stopped."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ended_as_by_ctrl_c() -> Generator[None]:
    """Raise `KeyboardInterrupt` on SIGTERM, too: the first process of a container would ignore it otherwise."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
