"""The checkpoint's file: the state after some entry, what all share in one piece and each agent's apart.

It is written in one transaction, so it is always whole: the last one, or the one before. Only agents that changed since are
written anew. Whoever writes it is alone with it; the journal goes on beside it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from otel_reliability.service.clock import Moment
from otel_reliability.service.journal_file import ERRORS, Form, JournalFile, WrongJournal

FORM: Final = Form(
    0x6F746C63,
    """
    CREATE TABLE core (piece INTEGER PRIMARY KEY, body BLOB NOT NULL);
    CREATE TABLE agent (key BLOB PRIMARY KEY, runs INTEGER NOT NULL, body BLOB NOT NULL, told BLOB) WITHOUT ROWID;
    CREATE TABLE point (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, now REAL NOT NULL, wall INTEGER NOT NULL);
    """,
)
PIECE: Final = 8 * 1024 * 1024
"""Bytes of the common part in one row."""


class AgentRow(NamedTuple):
    """What one agent has, by its key; how many runs that are, and what is told of them, if that is known."""

    key: bytes
    runs: int
    body: bytes
    told: bytes | None


class Point(NamedTuple):
    """When a checkpoint was made: after the entry `seq`."""

    seq: int
    moment: Moment


class Checkpoint(NamedTuple):
    """The state at a point: what all share, and what each agent has."""

    point: Point
    core: bytes
    agents: Iterable[AgentRow]


class CheckpointStore:
    """An open file of checkpoints. Raises as `JournalFile` does."""

    def __init__(self, path: Path) -> None:
        self._file = JournalFile(path, FORM, "full")  # entries go once it is written: it must be on the disk by then

    @property
    def damage(self) -> str:
        """What is damaged in it; empty where it is sound."""
        return self._file.damage

    @property
    def size(self) -> int:
        """Bytes in use."""
        return self._file.size

    def put(self, checkpoint: Checkpoint, keep: Sequence[bytes], may_commit: Callable[[], bool] = lambda: True) -> None:
        """Keep a checkpoint in place of the last. `keep`: the agents there still are; those not told are as they were.

        Where `may_commit` says no at the end, nothing is written.
        """
        self._file.transact(self._statements(checkpoint, keep, may_commit))

    def _statements(
        self, checkpoint: Checkpoint, keep: Sequence[bytes], may_commit: Callable[[], bool]
    ) -> Iterator[tuple[str, Iterable[tuple[object, ...]]]]:
        core, kept = memoryview(checkpoint.core), set(keep)
        yield "DELETE FROM core", [()]
        yield (
            "INSERT INTO core VALUES (?, ?)",
            ((at, bytes(core[at : at + PIECE])) for at in range(0, len(core), PIECE)),
        )
        gone = [(key,) for (key,) in self._file.db.execute("SELECT key FROM agent") if key not in kept]
        yield "DELETE FROM agent WHERE key = ?", gone
        yield "INSERT OR REPLACE INTO agent VALUES (?, ?, ?, ?)", checkpoint.agents
        point = checkpoint.point
        yield "INSERT OR REPLACE INTO point VALUES (1, ?, ?, ?)", [(point.seq, *point.moment)]
        if not may_commit():
            raise Abandoned

    def point(self) -> Point | None:
        """When the last checkpoint was made; None if there is none."""
        try:
            found = self._file.db.execute("SELECT seq, now, wall FROM point").fetchone()
        except ERRORS as error:
            raise WrongJournal(f"it is damaged ({error})") from None
        return None if found is None else Point(found[0], Moment(found[1], found[2]))

    def core(self) -> bytes:
        """What all share."""
        try:
            return b"".join(body for (body,) in self._file.db.execute("SELECT body FROM core ORDER BY piece"))
        except ERRORS as error:
            raise WrongJournal(f"it is damaged ({error})") from None

    def agents(self) -> Iterator[AgentRow]:
        """What each agent has."""
        try:
            yield from map(AgentRow._make, self._file.db.execute("SELECT key, runs, body, told FROM agent"))
        except ERRORS as error:
            raise WrongJournal(f"it is damaged ({error})") from None

    def close(self) -> None:
        """Close it, with everything in the one file."""
        self._file.close()


class Abandoned(Exception):
    """A checkpoint is not wanted any more."""
