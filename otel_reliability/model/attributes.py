"""Attributes as they lie on the wire, decoded when asked for; names and identifiers at a bounded length."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


class LazyAttributes(Mapping[str, Any]):
    """The attributes of one span or event: `raw` holds undecoded values by key, `value` decodes one.

    They keep the whole request they came in alive, so a holder of one must copy what it needs. Code that knows its keys takes
    them from `raw`.
    """

    __slots__ = ("raw", "value")

    def __init__(self, raw: Mapping[str, bytes], value: Callable[[bytes], Any]) -> None:
        self.raw, self.value = raw, value

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default where the key is absent."""
        return self.value(self.raw[key]) if key in self.raw else default

    def __getitem__(self, key: str) -> Any:
        if key not in self.raw:
            raise KeyError(key)
        return self.value(self.raw[key])

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
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
    return f"{text[: LONGEST - len(digest) - 1]}…{digest}"
