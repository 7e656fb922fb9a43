"""Everything this package raises on purpose.

    ReliabilityError ├── ConfigurationError      a setting that cannot be: which, what it was, what
    is allowed, what to do ├── SourceError             input that cannot be read at all │   ├──
    MalformedSpan       one span of a readable batch; its neighbours live on │   └── UndecodableBody
    a body that no decoder can read └── UnknownMetric           a name or dot path that names no
    metric; the message has the nearest

Hooks in the host's process never let any of these out (`telemetry.guard`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ReliabilityError(Exception):
    """The root of the tree."""


class ConfigurationError(ReliabilityError):
    """A setting that cannot be.

    The message has four parts: which field, what it was, what is allowed, what to do.

    >>> print(
    ...     ConfigurationError(
    ...         "windows[0].last", "ten", "a whole number from 1 to 1000000", "write it like 100"
    ...     )
    ... )
    windows[0].last: 'ten' is not a whole number from 1 to 1000000; write it like 100.
    """

    def __init__(self, field: str, value: object, allowed: str, remedy: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        self.remedy = remedy
        super().__init__(f"{field}: {value!r} is not {allowed}; {remedy}.")


class SourceError(ReliabilityError):
    """Input that cannot be read at all."""


class MalformedSpan(SourceError):
    """One span of a readable batch that cannot be used. Its neighbours are.

    `reason` is one of the fixed words it is counted by, `detail` says more, and never holds
    content.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


class UndecodableBody(SourceError):
    """A body that no decoder can read."""


class UnknownMetric(ReliabilityError):
    """A name or dot path that names no metric. The message names the known ones that are most like
    it.

    >>> print(UnknownMetric("scor", ["score", "tier"]))
    'scor' names no metric. Did you mean score?
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = list(known)
        near = difflib.get_close_matches(name, names, n=3) or difflib.get_close_matches(
            name, names, n=3, cutoff=0.0
        )
        super().__init__(f"{name!r} names no metric. Did you mean {', '.join(near)}?")
