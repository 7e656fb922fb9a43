"""`otel-reliability`, which kills itself at a moment that is aimed at.

Each moment is a place in the service's own code; at the so-many-th time that it is reached the
process is gone, as by `kill -9`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

from otel_reliability.cli import main
from otel_reliability.service import persistence
from otel_reliability.service.persistence import Persistent
from otel_reliability.service.state import State
from otel_reliability.state.store import Store

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
    """Die within a transaction, when this statement has run for all its rows and nothing is
    committed.
    """
    transact = Store.transact

    def dying(self: Store, statements: Any) -> None:
        def watched() -> Iterator[Any]:
            for text, rows in statements:
                yield text, rows
                if text.startswith(statement):
                    die()

        transact(self, watched())

    Store.transact = dying


MOMENTS: Final[dict[str, Callable[[Die], None]]] = {
    "before a group is written": lambda die: before(Persistent, "before_apply", die),
    "within a group commit": lambda die: within("INSERT OR REPLACE INTO arrival", die),
    "after a group commit": lambda die: after(Persistent, "before_apply", die),
    "before a request is applied": lambda die: before(State, "apply", die),
    "when a group is applied": lambda die: before(Persistent, "after_apply", die),
    "before deadlines are met": lambda die: after(Persistent, "before_deadlines", die),
    "when deadlines were met": lambda die: before(Persistent, "after_deadlines", die),
    "before a save": lambda die: before(Persistent, "_save_all", die),
    "within a save, after its runs": lambda die: within("INSERT OR REPLACE INTO run", die),
    "within a save, after its spans": lambda die: within("DELETE FROM arrival", die),
    "within a save, at its end": lambda die: within("INSERT OR REPLACE INTO saved", die),
    "when a save is done": lambda die: after(Persistent, "_save_all", die),
    "while agents are brought back": lambda die: after(Persistent, "_load_agents", die),
    "while spans are applied again": lambda die: after(Persistent, "_repeat", die),
    "while parts are brought back": lambda die: after(Persistent, "_load_part", die),
    "when state is back": lambda die: after(Persistent, "restore", die),
}
"""How to die at each of them."""
RARE: Final = frozenset(moment for moment in MOMENTS if "back" in moment)
"""Those that come once in a life."""


def dying_at(times: int) -> Die:
    """What ends the service at the so-many-th call."""
    calls = count(1)

    def die() -> None:
        if next(calls) >= times:
            os.kill(os.getpid(), signal.SIGKILL)

    return die


def serve(arguments: Sequence[str], moment: str | None, times: int) -> None:
    """Run `otel-reliability` in this process; it dies at a moment, at the so-many-th time. It saves
    five times as often as others do, so that little time has many saves.
    """
    persistence.SAVE_INTERVAL_S = 0.2
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    if moment is not None:
        MOMENTS[moment](dying_at(times))
    sys.argv = ["otel-reliability", *arguments]
    main()
