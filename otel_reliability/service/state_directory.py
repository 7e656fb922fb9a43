"""The directory in which a service keeps its state: one service at a time, readable by its user
alone.

It holds the database (`state.db`), the files that SQLite puts next to it, the key of the hashes
(`hash.key`), and what was set aside: what was damaged, and what another version wrote.
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

DATABASE: Final = "state.db"
KEY: Final = "hash.key"
SET_ASIDE: Final = ".damaged-"
COMPANIONS: Final = ("", "-wal", "-shm")
"""Suffixes of the files that SQLite puts next to a database; the first is the database's own."""
MAX_SET_ASIDE: Final = 3
"""Databases that were set aside and stay; older ones are deleted."""


class StateDirectory:
    """A directory, held by this process until it ends. Raises `ConfigurationError` where it cannot
    be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _wrong(
                path, f"a directory that can be written ({error.strerror})", "give another"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise _wrong(
                path, "free: another service keeps its state there", "give each its own"
            ) from None

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    def release(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def key(self) -> str:
        """The key of the hashes, hexadecimal. Made where there is none, so that hashes agree over
        restarts.
        """
        file = self.path / KEY
        with suppress(FileNotFoundError):
            found = file.read_text(encoding="ascii").strip()
            if found:
                return found
        made = secrets.token_hex(32)
        try:
            fresh = file.with_suffix(".new")
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as stream:
                stream.write(made)
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(file)
        except OSError as error:
            raise _wrong(
                self.path, f"a directory that can be written ({error.strerror})", "give another"
            ) from None
        return made

    def set_aside(self) -> str:
        """Rename the database and its companions. Returns the name that it has now."""
        base = f"{SET_ASIDE}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        mark = base
        number = 1
        while (self.path / f"{DATABASE}{mark}").exists():
            number += 1
            mark = f"{base}-{number}"
        for suffix in COMPANIONS:
            with suppress(FileNotFoundError):
                (self.path / f"{DATABASE}{suffix}").rename(self.path / f"{DATABASE}{mark}{suffix}")
        found = sorted(
            one
            for one in self.path.glob(f"{DATABASE}{SET_ASIDE}*")
            if not one.name.endswith(COMPANIONS[1:])
        )
        for old in found[:-MAX_SET_ASIDE]:
            for suffix in COMPANIONS:
                old.with_name(old.name + suffix).unlink(missing_ok=True)
        return f"{DATABASE}{mark}"


def _wrong(path: Path, allowed: str, remedy: str) -> ConfigurationError:
    return ConfigurationError("service.state", str(path), allowed, remedy)
