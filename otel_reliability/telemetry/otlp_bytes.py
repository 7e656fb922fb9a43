"""OTLP metrics as bytes, written by hand.

Ten thousand agents have a hundred and fifty thousand points a sending. Through the SDK one costs some twenty microseconds,
sixty times what it costs to write its bytes; and the SDK cannot say that a series has ended. Tests read these bytes with the
protocol's own messages and hold them to what the SDK sends.

Source: opentelemetry-proto 1.11, metrics/v1/metrics.proto; Protocol Buffers, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from otel_reliability.telemetry.names import InstrumentKind
from otel_reliability.telemetry.series import Exemplar, Spread

CUMULATIVE: Final = 2
DELTA: Final = 1

_double: Final = struct.Struct("<d").pack
_signed: Final = struct.Struct("<q").pack
_fixed: Final = struct.Struct("<Q").pack


def varint(value: int) -> bytes:
    """A whole number from 0, seven bits a byte.

    >>> varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


_SHORT: Final = tuple(varint(size) for size in range(2_048))


def field(number: int, content: bytes) -> bytes:
    """A field that holds bytes: a text, or another message."""
    size = len(content)
    return varint(number << 3 | 2) + (_SHORT[size] if size < len(_SHORT) else varint(size)) + content


def text(number: int, value: str) -> bytes:
    """A field that holds a text. A half of a surrogate pair, which no text on the wire can hold, becomes a question mark."""
    return field(number, value.encode("utf-8", "replace")) if value else b""


def attributes(number: int, pairs: Iterable[tuple[str, str | bool]]) -> bytes:
    """Attributes as repeated fields of that number."""
    return b"".join(field(number, text(1, key) + field(2, _any(value))) for key, value in pairs)


def _any(value: str | bool) -> bytes:
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    return field(1, value.encode("utf-8", "replace"))


def number_value(value: float) -> bytes:
    """The value of a number point: a whole number as one, so that a count stays exact."""
    return b"\x31" + _signed(value) if isinstance(value, int) else b"\x21" + _double(value)


NO_VALUE: Final = b"\x40\x01"
"""In place of a value: the flag that says the series has ended."""
NO_VALUE_IN_HISTOGRAM: Final = b"\x50\x01"


def times(start_ns: int, now_ns: int) -> bytes:
    """The times of a point that counts from a start."""
    return b"\x11" + _fixed(start_ns) + moment(now_ns)


def moment(now_ns: int) -> bytes:
    """The time of a point."""
    return b"\x19" + _fixed(now_ns)


def exemplar(number: int, one: Exemplar) -> bytes:
    """A measurement with its trace, as a field of that number."""
    content = (
        b"\x11" + _fixed(one.time_ns) + b"\x19" + _double(one.value) + field(4, one.span_id) + field(5, one.trace_id)
    )
    return field(number, content)


def spread(counts: Sequence[int], total: float, bounds: bytes) -> bytes:
    """The numbers of a histogram point."""
    packed = b"".join(map(_fixed, counts))
    return b"\x21" + _fixed(sum(counts)) + b"\x29" + _double(total) + field(6, packed) + bounds


def extremes(cell: Spread) -> bytes:
    """The least and the greatest measurement of a histogram that counts from its start."""
    return b"\x59" + _double(cell.lowest) + b"\x61" + _double(cell.highest)


def bounds_of(boundaries: Iterable[float]) -> bytes:
    """The boundaries of a histogram point."""
    return field(7, b"".join(map(_double, boundaries)))


def _gauge(points: bytes, temporality: int) -> bytes:
    return field(5, points)


def _counter(points: bytes, temporality: int) -> bytes:
    return field(7, points + b"\x10" + bytes((temporality,)) + b"\x18\x01")


def _up_down_counter(points: bytes, temporality: int) -> bytes:
    return field(7, points + b"\x10" + bytes((CUMULATIVE,)))


def _histogram(points: bytes, temporality: int) -> bytes:
    return field(9, points + b"\x10" + bytes((temporality,)))


DATA: Final[Mapping[InstrumentKind, Callable[[bytes, int], bytes]]] = {
    "gauge": _gauge,
    "counter": _counter,
    "up_down_counter": _up_down_counter,
    "histogram": _histogram,
}
"""How points of each kind stand in a metric: `points` are fields of number 1."""
