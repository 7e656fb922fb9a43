"""The runs among the last of an agent that will not change any more, in as few bytes as can be."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from otel_reliability.model.run import Run
from otel_reliability.windows.ids import SIZE, Ids
from otel_reliability.windows.recent_codec import read, write
from otel_reliability.windows.recent_record import Kept, Packed

FEW: Final = 2
"""So many runs may lie apart before all are packed together anew."""
SHARE: Final = 10
"""Of many runs, one of so many may: so what packing costs a run does not grow with them."""

_PLACE: Final = Struct(f"=q{SIZE}s")
_GONE_NS: Final = -(2**63)
_GONE: Final = _PLACE.pack(_GONE_NS, bytes(SIZE))
_OURS: Final = b"\0"
_READ_BACK: Final = b"\1"
"""What stands before a run that was read back, as it was written for a restart."""
_RAW: Final = -15
"""Deflate without a header."""
_LEVEL: Final = 3
"""6 takes three times as long for a twentieth less."""
_FORMAT: Final = 2
"""Of `marshal`: without references, so that what is equal looks equal."""


class SettledRuns:
    """Runs in the order in which they settled. What repeats from run to run is told once: they are packed together.

    A run that came last lies apart until there are some more: to pack costs as much as there are.
    """

    __slots__ = ("_apart", "_ids", "_live", "_packed", "_places")

    def __init__(self) -> None:
        self._ids = Ids()
        self._places = b""
        """When each ended, and its id; of those that are gone too."""
        self._packed = b""
        self._apart: tuple[bytes, ...] = ()
        self._live = 0

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[Kept]:
        for (end_ns, packed), written in zip(_PLACE.iter_unpack(self._places), self._written(), strict=True):
            if end_ns != _GONE_NS:
                run_id, body = self._ids.unpack(packed), written[1:]
                yield Packed(end_ns, run_id, body) if written[0] else read(body, run_id, end_ns)

    def __contains__(self, run_id: str) -> bool:
        """Whether a run is here."""
        return self._find(Ids.known_as(run_id)) is not None

    def add(self, run: Run) -> None:
        """A run settles. Raises OverflowError for numbers that are too large to be kept here, ValueError for odd values."""
        if not _fits(run):
            raise OverflowError(run.end_ns)
        self._take(run, _OURS + write(run))
        if len(self._apart) > max(FEW, self._live // SHARE):
            self._pack()

    def restore(self, runs: Sequence[Packed]) -> list[Packed]:
        """Take over runs that were read back, as they are, while there are none. Gives those that cannot be kept here."""
        for run in filter(_fits, runs):
            self._take(run, _READ_BACK + run.body)
        if self._live:
            self._pack()
        return [run for run in runs if not _fits(run)]

    def earliest(self) -> tuple[int, str] | None:
        """(end, run id) of the first of them; None if there is none."""
        places = [one for one in _PLACE.iter_unpack(self._places) if one[0] != _GONE_NS]
        if not places:
            return None
        first = min(places)[0]
        return first, min([self._ids.unpack(packed) for end_ns, packed in places if end_ns == first])

    def remove(self, run_id: str) -> bool:
        """A run goes. False: it is not here."""
        packed = Ids.known_as(run_id)
        at = self._find(packed)
        if at is not None:
            self._let_go(at, packed)
        return at is not None

    def _find(self, packed: bytes) -> int | None:
        """The place of a run."""
        places, begin = self._places, 0
        while (found := places.find(packed, begin)) >= 0:
            at, within = divmod(found, _PLACE.size)
            if within == _PLACE.size - SIZE and _PLACE.unpack_from(places, at * _PLACE.size)[0] != _GONE_NS:
                return at
            begin = found + 1
        return None

    def _take(self, run: Kept, written: bytes) -> None:
        self._apart = (*self._apart, written)
        self._places += _PLACE.pack(run.end_ns, self._ids.pack(run.run_id))
        self._live += 1

    def _let_go(self, at: int, packed: bytes) -> None:
        self._ids.release(packed)
        self._live -= 1
        if self._live:
            self._places = self._places[: at * _PLACE.size] + _GONE + self._places[(at + 1) * _PLACE.size :]
        else:
            self._places, self._packed, self._apart = b"", b"", ()

    def _pack(self) -> None:
        kept = [
            (place, written)
            for place, written in zip(_PLACE.iter_unpack(self._places), self._written(), strict=True)
            if place[0] != _GONE_NS
        ]
        self._places = b"".join([_PLACE.pack(*place) for place, _ in kept])
        self._packed, self._apart = pack(tuple([written for _, written in kept])), ()

    def _written(self) -> tuple[bytes, ...]:
        """All of them, those that are gone too."""
        return (*unpack(self._packed), *self._apart)


def _fits(run: Kept) -> bool:
    return -(2**63) < run.end_ns < 2**63


def pack(written: tuple[bytes, ...]) -> bytes:
    """Runs together.

    >>> unpack(pack((b"one", b"two")))
    (b'one', b'two')
    """
    press = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW)
    return press.compress(marshal.dumps(written, _FORMAT)) + press.flush()


def unpack(packed: bytes) -> tuple[bytes, ...]:
    """What `pack` was given."""
    return marshal.loads(zlib.decompress(packed, _RAW)) if packed else ()  # noqa: S302 (we wrote it)
