"""Bundles of what came at once, begun by the compiled module where it is installed: it fills two dozen slots in one call."""

from __future__ import annotations

from typing import Any, Final

from otel_reliability.assembly.blocks import Block
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.compiled import NATIVE
from otel_reliability.assembly.resting import NO_ROWS

BEGINNER: Final[Any] = None if NATIVE is None else NATIVE.Beginner(Bundle(b"", 0.0, Block(b"", NO_ROWS, [])), Block)
"""Knows where the slots of bundles and of blocks lie."""


def begun(block: Block, now: float) -> Bundle:
    """A bundle that begins with a block.

    >>> begun(Block(b"t" * 16, NO_ROWS, []), 1.0).born
    1.0
    """
    if BEGINNER is None or block.rest is None:
        return Bundle(block.trace_id, now, block)
    found: Bundle = BEGINNER.begin(block.trace_id, now, block.rest, block.others[:])
    return found
