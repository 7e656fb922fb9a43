"""Everything this package raises on purpose.

    ReliabilityError
    ├── ConfigurationError      a setting that cannot be: which, what it was, what is allowed, what to do
    ├── SourceError             input that cannot be read at all
    │   ├── MalformedSpan       one span of a readable batch; its neighbours live on
    │   └── UndecodableBody     a body that no decoder can read
    └── UnknownMetric           a name or dot path that names no metric; carries the nearest names

Hooks in the host's process never let any of these out (`telemetry.guard`).
"""

from __future__ import annotations


class ReliabilityError(Exception):
    """The root of the tree."""


class ConfigurationError(ReliabilityError):
    """A setting that cannot be.

    The message has four parts: which field, what it was, what is allowed, what to do.

    >>> print(ConfigurationError("windows[0].last", "ten", "a whole number from 1 to 1000000", "write it like 100"))
    windows[0].last: 'ten' is not a whole number from 1 to 1000000; write it like 100.
    """

    def __init__(self, field: str, value: object, allowed: str, remedy: str) -> None:
        self.field, self.value, self.allowed, self.remedy = field, value, allowed, remedy
        super().__init__(f"{field}: {value!r} is not {allowed}; {remedy}.")


class SourceError(ReliabilityError):
    """Input that cannot be read at all."""


class MalformedSpan(SourceError):
    """One span of a readable batch that cannot be used. Its neighbours are.

    `reason` is one of the fixed words it is counted by, `detail` says more, and never holds content.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


class UndecodableBody(SourceError):
    """A body that no decoder can read."""


class UnknownMetric(ReliabilityError):
    """A name or dot path that names no metric."""

    def __init__(self, name: str, nearest: tuple[str, ...] = ()) -> None:
        self.name, self.nearest = name, nearest
        hint = f" Did you mean {', '.join(nearest)}?" if nearest else ""
        super().__init__(f"{name!r} names no metric.{hint}")
