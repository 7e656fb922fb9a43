"""Text that XML can hold: it has no place for most control characters, escaped or not."""

from __future__ import annotations

import re
from typing import Final

_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def allowed(text: str) -> str:
    r"""The text with what XML cannot hold replaced.

    >>> allowed("refund\x1b tool")
    'refund� tool'
    """
    return _FORBIDDEN.sub("�", text)
