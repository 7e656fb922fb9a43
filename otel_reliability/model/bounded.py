"""Names and identifiers that are kept for long, at a bounded length: anybody may have sent them."""

from __future__ import annotations

import hashlib
from typing import Final

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
