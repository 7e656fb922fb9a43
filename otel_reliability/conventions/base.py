"""What a convention is, and what it says of a span.

A convention reads one family of instrumentations. It either does not know a span (None), or tells what it is; kind OTHER is
an answer too: "mine, and nothing you need". The first convention that answers wins, so a span that carries two conventions
counts once. Conventions keyed on an instrumentation scope are asked before those keyed on attributes.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import Facts, Kind, RawSpan


class Told(NamedTuple):
    """What a convention says of a span.

    `failed` None: the status decides. `session` is an id from the convention's own keys (the common ones are read for all).
    """

    kind: Kind
    facts: Facts | None = None
    failed: bool | None = None
    session: str | None = None


NOTHING = Told(Kind.OTHER)
"""Recognised, and nothing: a graph node, an event told as a span, a merged tool span."""


class Convention(Protocol):
    """One family of instrumentations, in one file, its names included.

    - `name`: as `inspect` and the documentation print it.
    - `scopes`: prefixes of instrumentation scopes it reads; empty: it is asked about every span.
    - `keys`, `prefixes`: the attributes it may look at. Nothing else of a span is kept for it.
    - `needs`, which only those have that go by keys alone: attributes without all of which it knows no span, and is not asked.
    """

    name: ClassVar[str]
    scopes: ClassVar[tuple[str, ...]]
    keys: ClassVar[frozenset[str]]
    prefixes: ClassVar[tuple[str, ...]]

    def read(self, span: RawSpan, hasher: Hasher) -> Told | None:
        """What the span is, or None where this convention does not know it."""
        ...
