"""Whether any of some attribute keys may stand in a request, told by its bytes.

To look for a dozen keys one after another costs more than to read the request. But all of them hold a dot, and of the dots in
a request hardly any has the neighbours that a wanted key's dot has. So the dots are found once, and all their neighbours compared
at once; only a key that has such a dot is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

HEAD: Final = 4 * 1024
"""Bytes of a body in which each key is looked for by itself: where there is one, there mostly is one on every span."""
MANY: Final = 64
"""Likely places beyond which it is cheaper to look through the whole body."""
_WIDTH: Final = 4
"""Bytes of a neighbourhood: the dot and what stands before it."""
_DOT: Final = b"."


class Markers:
    """Some keys, or parts of keys.

    >>> markers = Markers([b"gen_ai.", b"session.id"])
    >>> markers.stand_in(b"... gen_ai.system ..."), markers.stand_in(b"... http.route ...")
    (True, False)
    """

    def __init__(self, markers: Iterable[bytes]) -> None:
        self._markers = tuple(markers)
        self._plain = tuple(marker for marker in self._markers if marker.find(_DOT) < _WIDTH - 1)
        self._by_neighbours: dict[int, list[bytes]] = {}
        for marker in self._markers:
            if marker not in self._plain:
                self._by_neighbours.setdefault(_neighbours(marker), []).append(marker)
        self._neighbours = np.array(list(self._by_neighbours), np.uint32)

    def stand_in(self, body: bytes) -> bool:
        """Whether any of them does."""
        head = body[:HEAD]
        if any(marker in head for marker in self._markers):
            return True
        return len(body) > HEAD and (any(marker in body for marker in self._plain) or self._at_a_dot(body))

    def _at_a_dot(self, body: bytes) -> bool:
        dots = np.flatnonzero(np.frombuffer(body, np.uint8) == ord(_DOT))
        dots = dots[np.searchsorted(dots, _WIDTH - 1) :]
        words: Any = np.ndarray(len(body) - _WIDTH + 1, "<u4", body, 0, (1,))
        there = words[dots - (_WIDTH - 1)]
        likely = np.flatnonzero(np.isin(there, self._neighbours))
        if len(likely) > MANY:
            return any(marker in body for marker in self._markers)
        return any(
            body.startswith(marker, dot - marker.find(_DOT))
            for dot, word in zip(dots[likely].tolist(), there[likely].tolist(), strict=True)
            for marker in self._by_neighbours[word]
            if dot >= marker.find(_DOT)
        )


def _neighbours(marker: bytes) -> int:
    """What stands before its first dot, and the dot, as a number."""
    dot = marker.find(_DOT)
    return int.from_bytes(marker[dot - _WIDTH + 1 : dot + 1], "little")
