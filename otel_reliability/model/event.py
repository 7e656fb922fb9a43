"""What happens to a run after it was rebuilt: the only thing that leaves assembly."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from otel_reliability.model.run import Run


class RunChange(enum.Enum):
    """CLOSED: a run is done. REVISED: late spans changed a closed run (`previous` is what it was). WITHDRAWN: a closed run
    turned out to be part of another, or none. FINAL: its `reopen` has passed, it will not change any more: counters and
    histograms record it now, once.
    """

    CLOSED = "closed"
    REVISED = "revised"
    WITHDRAWN = "withdrawn"
    FINAL = "final"


class RunEvent(NamedTuple):
    """One change of one run. `previous` is set for REVISED only; for WITHDRAWN `run` is the run that goes."""

    change: RunChange
    run: Run
    previous: Run | None = None


_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
event_of: Final[Callable[[Iterable[Any]], RunEvent]] = partial(_tuple, RunEvent)
"""An event of (change, run, previous): each run has two, and so they are made without a call in Python.

>>> event_of((RunChange.CLOSED, "run", None)) == RunEvent(RunChange.CLOSED, "run")
True
"""
