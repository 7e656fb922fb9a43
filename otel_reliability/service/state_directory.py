"""The directory in which a service keeps its state: one service at a time, readable by its user alone.

It holds the journal (`journal.db`), the last checkpoint (`checkpoint.db`), the files that SQLite puts beside them, the key of
the hashes (`hash.key`), and what was damaged and set aside.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from otel_reliability.errors import ConfigurationError

JOURNAL: Final = "journal.db"
CHECKPOINT: Final = "checkpoint.db"
KEPT: Final = (JOURNAL, CHECKPOINT)
KEY: Final = "hash.key"
LOCK: Final = "lock"
DAMAGED: Final = ".damaged-"
BESIDE: Final = ("", "-wal", "-shm")
"""What SQLite appends to the name of a file for those beside it."""
MOST_DAMAGED: Final = 3
"""Damaged journals that are left for somebody to look at; older ones go."""
_KEY_BYTES: Final = 32


class StateDirectory:
    """A directory, held by this process until it ends. Raises `ConfigurationError` where it cannot be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _wrong(path, f"a directory that can be written ({error.strerror})", "give another") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise _wrong(path, "free: another service keeps its state there", "give each its own") from None

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self.path / JOURNAL

    @property
    def checkpoint(self) -> Path:
        """The checkpoint's file."""
        return self.path / CHECKPOINT

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def key(self) -> str:
        """The key of the hashes, hexadecimal. Made where there is none, so that hashes agree over restarts."""
        file = self.path / KEY
        with suppress(FileNotFoundError):
            found = file.read_text(encoding="ascii").strip()
            if found:
                return found
        made = secrets.token_hex(_KEY_BYTES)
        try:
            fresh = file.with_suffix(".new")
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as stream:
                stream.write(made)
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(file)
        except OSError as error:
            raise _wrong(self.path, f"a directory that can be written ({error.strerror})", "give another") from None
        return made

    def set_aside(self) -> str:
        """Move the journal and its checkpoint out of the way. Gives the name that the journal has now."""
        base = f"{DAMAGED}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        mark, number = base, 1
        while any((self.path / f"{name}{mark}").exists() for name in KEPT):
            number += 1
            mark = f"{base}-{number}"
        for name in KEPT:
            for beside in BESIDE:
                with suppress(FileNotFoundError):
                    (self.path / f"{name}{beside}").rename(self.path / f"{name}{mark}{beside}")
            self._drop_old(name)
        return f"{JOURNAL}{mark}"

    def _drop_old(self, name: str) -> None:
        found = sorted(one for one in self.path.glob(f"{name}{DAMAGED}*") if not one.name.endswith(BESIDE[1:]))
        for old in found[:-MOST_DAMAGED]:
            for beside in BESIDE:
                old.with_name(old.name + beside).unlink(missing_ok=True)


def _wrong(path: Path, allowed: str, remedy: str) -> ConfigurationError:
    return ConfigurationError("service.state", str(path), allowed, remedy)
