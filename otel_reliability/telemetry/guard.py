"""The boundary to the host: an error inside is counted, logged once, and goes no further.

Every hook that the host's SDK calls stands inside one `Guard`; below it exceptions fly. Under tests
the guards are loud (`OTEL_RELIABILITY_LOUD=1`, or `Guard.loud = True`): a bug that would be
swallowed in production fails the test.
"""

from __future__ import annotations

import contextlib
import logging
import os
import traceback
from collections import Counter
from types import TracebackType
from typing import ClassVar, Final

LOUD_VARIABLE: Final = "OTEL_RELIABILITY_LOUD"

_logger = logging.getLogger("otel_reliability")


class Guard:
    """A context manager that lets no exception of ours reach the host.

    It has no state of one use, so one object serves all threads. `KeyboardInterrupt` and its like
    are the host's, and pass. The log names the exception's type and where it came from, never its
    message: that may quote a tool's arguments.

    >>> Guard.loud, before = False, Guard.loud
    >>> with Guard("the doctest"):
    ...     raise ValueError("secret")
    >>> Guard.faults["the doctest"]
    1
    >>> Guard.loud = before
    """

    __slots__ = ("place",)

    loud: ClassVar[bool] = os.environ.get(LOUD_VARIABLE, "").strip().lower() in {"1", "true"}
    """True if exceptions pass: tests only."""
    faults: ClassVar[Counter[str]] = Counter()
    """Number of failures of each place, since the process began."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        return self.stops(error)

    def stops(self, error: BaseException) -> bool:
        """Count an exception and return True; False if it must be raised again. For hooks in which
        a `with` costs too much.
        """
        if self.loud:
            return False
        Guard.faults[self.place] += 1
        if Guard.faults[self.place] == 1:
            # A logging handler is the host's, and may fail too.
            with contextlib.suppress(Exception):
                _log(self.place, error)
        return True


def _log(place: str, error: BaseException) -> None:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    _logger.error(
        "%s failed with %s at %s. Your program is not affected; reliability numbers may "
        "lack something. "
        "Further failures there are counted in otel_reliability.faults and not logged.",
        place,
        type(error).__name__,
        where,
    )
