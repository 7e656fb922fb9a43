"""Attributes as they lie on the wire, decoded when asked for; names and identifiers at a bounded length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from otel_reliability.model.blake2 import blake2b


class Values(Protocol):
    """The values of undecoded ones: `[raw]` of one that many spans may hold, `once` of one that is a span's own."""

    def __getitem__(self, raw: bytes, /) -> Any: ...
    def once(self, raw: bytes, /) -> Any: ...


class LazyAttributes(Mapping[str, Any]):
    """The attributes of one span or event: `raw` holds undecoded values by key, `memo` the value of every undecoded one.

    They keep the whole request they came in alive, so a holder of one must copy what it needs. `memo` is shared by
    the spans of a request: the small values that repeat (an operation, a tool's name) are decoded once. It goes when the
    request goes, so no content outlives it.

    Code that knows its keys takes them from `raw` and looks them up in `memo`: both are calls in C.
    """

    __slots__ = ("memo", "raw")

    def __init__(self, raw: Mapping[str, bytes], memo: Values) -> None:
        self.raw, self.memo = raw, memo

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default where the key is absent."""
        raw = self.raw
        return self.memo[raw[key]] if key in raw else default

    def __getitem__(self, key: str) -> Any:
        if key not in self.raw:
            raise KeyError(key)
        return self.memo[self.raw[key]]

    def __contains__(self, key: object) -> bool:
        return key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def __len__(self) -> int:
        return len(self.raw)

    def __repr__(self) -> str:
        return f"LazyAttributes({sorted(self.raw)})"


LONGEST: Final = 256
"""Characters of a name or an identifier."""
_DIGEST: Final = 8


def bounded(text: str) -> str:
    """The text, or as much of it as there is room for, and a digest of all of it: two that differ stay two.

    A member of an enumeration of strings, which a host may give, is its value: what is kept for long is plain.

    >>> bounded("support"), len(bounded("x" * 1_000_000))
    ('support', 256)
    >>> bounded("x" * 1_000) == bounded("x" * 1_001)
    False
    """
    if len(text) <= LONGEST:
        return text if type(text) is str else str.__str__(text)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
    return f"{text[: LONGEST - len(digest) - 1]}…{digest}"
