"""What the rules of `batch` make of all spans of a group at once, field by field.

Each step is one call in C that goes over all of them: a third of what the same rules cost span by span.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import le

from otel_reliability.model.span import SpanId
from otel_reliability.sources.batch import (
    LATEST_NS,
    NO_SPAN,
    NO_TRACE,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    Malformed,
    fault,
    parent,
    parent_remote,
)


def problems(
    traces: Sequence[bytes], ids: Sequence[bytes], parents: Sequence[bytes], starts: Sequence[int], ends: Sequence[int]
) -> list[Malformed | None] | None:
    """What makes each span unusable, None for one that is sound; None for all: every one is, as they mostly are.

    >>> problems([bytes(15) + b"t"], [bytes(7) + b"s"], [b""], [1], [2])
    >>> [problem.detail for problem in problems([b"t"], [bytes(7) + b"s"], [b""], [1], [2])]
    ['the trace id has 1 bytes, not 16']
    """
    sound = (
        set(map(len, traces)) <= {TRACE_ID_BYTES}
        and set(map(len, ids)) <= {SPAN_ID_BYTES}
        and set(map(len, parents)) <= {0, SPAN_ID_BYTES}
        and not (NO_TRACE in traces or NO_SPAN in ids)
        and min(starts, default=1) > 0
        and min(ends, default=1) > 0
        and max(starts, default=1) <= LATEST_NS
        and max(ends, default=1) <= LATEST_NS
    )
    return None if sound else list(map(fault, traces, ids, parents, starts, ends))


def above(parents: Sequence[bytes]) -> Iterable[SpanId | None]:
    """Each span's parent, None for a root.

    >>> list(above([b"", bytes(8), b"parent-1"]))
    [None, None, b'parent-1']
    """
    return parents if all(parents) and NO_SPAN not in parents else map(parent, parents)


def remote(flags: Iterable[int]) -> Iterable[bool | None]:
    """Whether each span's parent lives in another process. There are few flags, and many spans.

    >>> list(remote([0x300, 0x100, 0, 0x300]))
    [True, False, None, True]
    """
    return map({flag: parent_remote(flag) for flag in set(flags)}.__getitem__, flags)


def later(starts: Sequence[int], ends: Sequence[int]) -> Iterable[int]:
    """Each span's end, no earlier than its start.

    >>> list(later([1, 5], [3, 2]))
    [3, 5]
    """
    return ends if all(map(le, starts, ends)) else map(max, starts, ends)
