"""What nearly every bundle goes through, many of them in one call, by the compiled module where it is installed.

It begins bundles with blocks of new traces, closes those that are one usual run, and settles them. Where it comes to one that is
not so plain it stops, and `Assembler` goes on; tests compare the two.
"""

from __future__ import annotations

from typing import Any, Final

from otel_reliability.assembly.beginning import BEGINNER
from otel_reliability.assembly.build import Builder
from otel_reliability.assembly.bundle import State
from otel_reliability.assembly.compiled import NATIVE
from otel_reliability.assembly.gathering import Accounts, Gathering
from otel_reliability.assembly.judged import SettledRuns
from otel_reliability.assembly.rows import ROW_BYTES
from otel_reliability.assembly.simple import top_of
from otel_reliability.assembly.unit import SPAN_BYTES
from otel_reliability.config import AssemblySettings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.run import CloseReason

_STATES: Final = tuple(State)
_TOLD: Final = RunEvent, RunChange.CLOSED, RunChange.SETTLED
_WEIGHTS: Final = ROW_BYTES, SPAN_BYTES


def usual_of(
    builder: Builder,
    gathering: Gathering,
    most: int,
    settled: SettledRuns,
    times: AssemblySettings,
    accounts: Accounts,
) -> Any:
    """What does so with what is an assembler's; None: all is done one by one. `most`: spans that a bundle may hold."""
    maker = builder.simple.maker
    if NATIVE is None or maker is None:
        return None
    limits = times.linger, times.reopen, most
    return NATIVE.Usual(
        BEGINNER, _STATES, _TOLD, CloseReason.ROOT, _WEIGHTS, limits, maker, top_of, gathering, settled, accounts
    )
