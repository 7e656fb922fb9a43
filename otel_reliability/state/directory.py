"""The directory in which a service keeps its state: one service at a time, readable by its user
alone.

It holds the database (`state.db`), the files that SQLite puts next to it, the key of the hashes
(`hash.key`), and the damaged databases that were set aside, which nothing here ever deletes.

A salvage writes to `state.db.new`. When that is complete, the damaged files get their second names,
`state.db.new` becomes `state.db.salvaged`, and that becomes `state.db`. A process that dies in
between leaves either the damaged database, which is salvaged again, or the complete new one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from otel_reliability.errors import ConfigurationError

DATABASE: Final = "state.db"
KEY: Final = "hash.key"
SET_ASIDE: Final = ".damaged-"
COMPANIONS: Final = ("", "-wal", "-shm")
"""Suffixes of the files that SQLite puts next to a database; the first is the database's own."""
SALVAGE: Final = "state.db.new"
SALVAGED: Final = "state.db.salvaged"
HEADED: Final = "state.db.headed"
MIN_KEY_BYTES: Final = 16
_IN_USE: Final = b"in use"

_logger = logging.getLogger("otel_reliability.service")


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

    @property
    def salvage(self) -> Path:
        """File to which a salvage writes until it is complete."""
        return self.path / SALVAGE

    @property
    def lacks_journal(self) -> bool:
        """Return whether the last process did not end in good order and its journal is gone."""
        was_in_use = os.pread(self._lock, len(_IN_USE), 0) == _IN_USE
        journal = self.path / f"{DATABASE}-wal"
        return was_in_use and self.database.exists() and not journal.exists()

    def use(self) -> None:
        """Note that the database is open, and has a journal next to it."""
        os.pwrite(self._lock, _IN_USE, 0)

    def release(self) -> None:
        """Let another process have it. The database was closed in good order."""
        os.ftruncate(self._lock, 0)
        os.close(self._lock)

    def key(self) -> str:
        """The key of the hashes, hexadecimal. Made where there is none, so that hashes agree over
        restarts.
        """
        file = self.path / KEY
        if file.exists():
            return _key_of(file)
        if self.database.exists():
            _logger.warning(
                "%s is missing, so a new key is made: arguments hashed from now on compare with "
                "none of the stored runs. Restore the file from a backup to compare them.",
                file,
            )
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
        """Give the database and its companions second names. Return that of the database."""
        base = f"{SET_ASIDE}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        mark = base
        number = 1
        while (self.path / f"{DATABASE}{mark}").exists():
            number += 1
            mark = f"{base}-{number}"
        for suffix in COMPANIONS:
            with suppress(FileNotFoundError):
                _link(self.path / f"{DATABASE}{suffix}", self.path / f"{DATABASE}{mark}{suffix}")
        return f"{DATABASE}{mark}"

    def discard_salvage(self) -> None:
        """Delete what an interrupted salvage wrote."""
        for suffix in COMPANIONS:
            (self.path / f"{SALVAGE}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def headed(self, page: bytes) -> Generator[Path]:
        """Lend a copy of the database that begins with another first page."""
        copy = self.path / HEADED
        try:
            for suffix in COMPANIONS[:2]:
                with suppress(FileNotFoundError):
                    shutil.copyfile(self.path / f"{DATABASE}{suffix}", f"{copy}{suffix}")
            with copy.open("r+b") as file:
                file.write(page)
            yield copy
        finally:
            for suffix in COMPANIONS:
                Path(f"{copy}{suffix}").unlink(missing_ok=True)

    def replace_database(self) -> str:
        """Put the complete salvage in place of the database. Return the name of the damaged one."""
        name = self.set_aside()
        self.salvage.replace(self.path / SALVAGED)
        self.finish_replacing()
        return name

    def finish_replacing(self) -> None:
        """Put a complete salvage in place, where a process died before it had done so."""
        complete = self.path / SALVAGED
        if complete.exists():
            for suffix in COMPANIONS[1:]:
                (self.path / f"{DATABASE}{suffix}").unlink(missing_ok=True)
            complete.replace(self.database)


def _link(file: Path, name: Path) -> None:
    """Give a file a second name, or copy it where the file system has no links."""
    try:
        os.link(file, name)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, name)
        name.chmod(0o600)


def _key_of(file: Path) -> str:
    """Return the key in a file. Raise `ConfigurationError` if it holds none."""
    try:
        key = file.read_text(encoding="ascii").strip()
        if len(bytes.fromhex(key)) >= MIN_KEY_BYTES:
            return key
    except (OSError, ValueError):
        pass
    raise _wrong(
        file,
        f"a readable file with at least {2 * MIN_KEY_BYTES} hexadecimal digits",
        "restore it from a backup, or delete it: then new hashes compare with no stored run",
    )


def _wrong(path: Path, allowed: str, remedy: str) -> ConfigurationError:
    return ConfigurationError("service.state", str(path), allowed, remedy)
