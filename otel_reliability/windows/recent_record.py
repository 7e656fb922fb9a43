"""A run as it is kept over a restart."""

from __future__ import annotations

import marshal
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.record import read_run, write_run
from otel_reliability.model.run import Run

_FORMAT: Final = 4
"""Of `marshal`: every supported Python reads it."""


class Packed(NamedTuple):
    """A run that was read back and that nobody has asked for yet."""

    end_ns: int
    run_id: str
    body: bytes

    def run(self) -> Run:
        """The run itself. Raises `BadRecord`."""
        return read_run(marshal.loads(self.body))  # noqa: S302 (whoever keeps it checks that we wrote it)


def pack(run: Run) -> Packed:
    """A run as it is kept over a restart.

    >>> from otel_reliability.testing import run
    >>> pack(run(["search"])).run().path
    ('search',)
    """
    return Packed(run.end_ns, run.run_id, marshal.dumps(write_run(run), _FORMAT))


Kept: TypeAlias = Run | Packed
"""A run, or one that was read back."""
