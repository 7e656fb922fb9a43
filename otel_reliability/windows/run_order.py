"""The order of runs, (end time, run id), as bytes that compare alike and from which both can be read."""

from __future__ import annotations

from typing import Final

END_BYTES: Final = 10
_BIAS: Final = 1 << 79
"""Added to an end time, so that earlier ends than 1970 compare as they should."""
_HEX_ID, _TEXT_ID = b"\1", b"\2"
_HEX_LENGTH: Final = 49
_TRACE_LENGTH: Final = 32
_HEX_END: Final = END_BYTES + 1 + 24
_STOP: Final = b"\0"
"""What ends the id of text, so that a shorter id compares as the lesser."""


def order_of(end_ns: int, run_id: str) -> bytes:
    """Return the bytes of a run's order: 35 for the id of a trace and a span in lower-case hexadecimal, more for any other.

    >>> order_of(5, "b") < order_of(6, "a"), order_of(5, "a") < order_of(5, "aa")
    (True, True)
    """
    return end_bytes(end_ns) + id_bytes(run_id)


def end_bytes(end_ns: int) -> bytes:
    """Return the part of an order that holds the end: it compares as less than any order of the same end."""
    return (end_ns + _BIAS).to_bytes(END_BYTES)


def id_bytes(run_id: str) -> bytes:
    """Return the part of an order that holds the id."""
    if len(run_id) == _HEX_LENGTH and run_id[_TRACE_LENGTH] == "-" and run_id == run_id.lower():
        try:
            return _HEX_ID + bytes.fromhex(run_id[:_TRACE_LENGTH] + run_id[_TRACE_LENGTH + 1 :])
        except ValueError:
            pass
    return _TEXT_ID + run_id.encode("utf-8", "surrogatepass") + _STOP


def end_in(record: bytes) -> int:
    """Return the end time (ns) of bytes that begin with an order."""
    return int.from_bytes(record[:END_BYTES]) - _BIAS


def run_id_in(record: bytes) -> tuple[str, int]:
    """Return the run id of bytes that begin with an order, and the length of the order.

    >>> run_id_in(order_of(7, f"{'0af7' * 8}-{'b7ad' * 4}") + b"more")
    ('0af70af70af70af70af70af70af70af7-b7adb7adb7adb7ad', 35)
    """
    if record[END_BYTES] == _HEX_ID[0]:
        return record[END_BYTES + 1 : _HEX_END].hex("-", -16), _HEX_END
    stop = record.index(_STOP, END_BYTES + 1)
    return record[END_BYTES + 1 : stop].decode("utf-8", "surrogatepass"), stop + 1
