"""A run as it is kept over a restart."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from otel_reliability.model.record import pack_run, unpack_run
from otel_reliability.model.run import Run


class Packed(NamedTuple):
    """A run that was read back and that nobody has asked for yet."""

    end_ns: int
    run_id: str
    body: bytes

    def run(self) -> Run:
        """The run itself. Raises `Damaged`."""
        return unpack_run(self.body)


def pack(run: Run) -> Packed:
    """A run as it is kept over a restart.

    >>> from otel_reliability.testing import run
    >>> pack(run(["search"])).run().path
    ('search',)
    """
    return Packed(run.end_ns, run.run_id, pack_run(run))


Kept: TypeAlias = Run | Packed
"""A run, or one that was read back."""
