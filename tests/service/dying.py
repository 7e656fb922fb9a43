"""`otel-reliability`, which kills itself at a moment that is aimed at: `python -m tests.service.dying MOMENT TIMES serve …`.

Each moment is a place in the service's own code; at the so-many-th time that it is reached the process is gone, as by
`kill -9`. Checkpoints are written far more often than by default, so that their moments come soon.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Final, TypeAlias, cast

from otel_reliability.cli import main
from otel_reliability.service.checkpoint_store import CheckpointStore
from otel_reliability.service.checkpoints import Checkpoints
from otel_reliability.service.journal_file import JournalFile
from otel_reliability.service.journal_sqlite import Sqlite
from otel_reliability.service.journal_store import Store
from otel_reliability.service.state import State

LEAST: Final = 30_000
"""Bytes of entries before a checkpoint."""
SERVICE: Final = os.getpid()


Die: TypeAlias = Callable[[], None]


def before(owner: Any, name: str, die: Die) -> None:
    """Die instead of calling a method."""
    method = getattr(owner, name)

    def dying(*given: Any, **named: Any) -> Any:
        die()
        return method(*given, **named)

    setattr(owner, name, dying)


def after(owner: Any, name: str, die: Die) -> None:
    """Die when a method has done its work."""
    method = getattr(owner, name)

    def dying(*given: Any, **named: Any) -> Any:
        found = method(*given, **named)
        die()
        return found

    setattr(owner, name, dying)


def within(statement: str, die: Die) -> None:
    """Die within a transaction, when this statement has run for all its rows and nothing is committed."""
    transact = JournalFile.transact

    def dying(self: JournalFile, statements: Any) -> None:
        def watched() -> Iterator[Any]:
            for text, rows in statements:
                yield text, rows
                if text.startswith(statement):
                    die()

        transact(self, watched())

    JournalFile.transact = dying


def between(die: Die) -> None:
    """Die between two entries that are applied again, but not before the first."""
    entries = Store.entries

    def dying(self: Store, after: int) -> Iterator[Any]:
        for at, entry in enumerate(entries(self, after)):
            if at:
                die()
            yield entry

    Store.entries = dying


MOMENTS: Final[dict[str, Callable[[Die], None]]] = {
    "before a group is written": lambda die: before(Sqlite, "commit", die),
    "within a group commit": lambda die: within("INSERT OR REPLACE INTO entry", die),
    "after a group commit": lambda die: after(Sqlite, "commit", die),
    "before a request is applied": lambda die: before(State, "apply", die),
    "when a group is applied": lambda die: before(Sqlite, "applied", die),
    "before deadlines are met": lambda die: after(Sqlite, "advancing", die),
    "when deadlines were met": lambda die: before(Sqlite, "advanced", die),
    "when a checkpoint has begun": lambda die: after(Checkpoints, "begin", die),
    "within a checkpoint's transaction": lambda die: within("INSERT OR REPLACE INTO agent", die),
    "when a checkpoint is written": lambda die: after(CheckpointStore, "put", die),
    "before entries are let go": lambda die: before(Store, "prune", die),
    "while entries are let go": lambda die: within("DELETE FROM entry", die),
    "when a checkpoint is brought back": lambda die: after(Checkpoints, "restore", die),
    "while entries are applied again": between,
    "when state is back": lambda die: after(Sqlite, "restore", die),
}
"""How to die at each of them."""
RARE: Final = frozenset(
    moment for moment in MOMENTS if "checkpoint" in moment or moment.startswith(("while entries", "when state"))
)
"""Those that come seldom, or once in a life."""


def dying_at(times: int) -> Die:
    """What ends the service at the so-many-th call, from whichever of its processes."""
    calls = count(1)

    def die() -> None:
        if next(calls) >= times:
            os.kill(SERVICE, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    return die


if __name__ == "__main__":
    moment, times = sys.argv[1], int(sys.argv[2])
    cast("dict[str, Any]", Sqlite.__init__.__kwdefaults__)["least"] = LEAST
    MOMENTS[moment](dying_at(times))
    sys.argv = ["otel-reliability", *sys.argv[3:]]
    main()
