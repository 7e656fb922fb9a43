"""Model and tool calls of a trace as records of one length, side by side in bytes.

The calls of a trace are a dozen objects each, and hardly anybody looks at one: what windows count of a run is known before it is
made. So they stay bytes from the request to the run, and become objects for whoever asks. The compiled modules write these
records and read them; what is here does the same, and is what they are compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability import native
from otel_reliability.model.columns import shared

Packed: TypeAlias = tuple[bytes, tuple[Any, ...], tuple[Any, ...], tuple[Any, ...], int]
"""- The data: how many model calls and how many tool calls there are, their records in the order in which they came, their texts.
- What records refer to: of a model call (model, asked model, whether it asked for tools, what few tell), of a tool call the call.
- What the model calls are alike in, and what the tool calls: `shared`, `remote` and `span_kind` of rows.
- How many calls there are.
"""

NUMBER: Final = 4
"""Where that stands."""
HEAD: Final = Struct("<II")
RECORD: Final = Struct("<8s8sqqqqIIHB5x")
"""Id, parent, start, end, input and output tokens; where its text begins among the texts, and its size; what it refers to; marks.
The text is the id of a model's response, or of a call.
"""
TOOL, FAILED, PARENT, INPUT, OUTPUT, TEXT = 1, 2, 4, 8, 16, 32
"""The marks of a record: what it is, and what of it is told."""
MOST: Final = 1 << 16
"""As many things can be referred to."""

NATIVE: Final = native.load("otel_reliability_native_rows")
"""Does what is usual, where it is installed."""
_ORDER: Final = itemgetter(2, 3, 0)


class Record(NamedTuple):
    """A call."""

    id: bytes
    parent: bytes
    start_ns: int
    end_ns: int
    input: int
    output: int
    text_at: int
    text_size: int
    told: int
    marks: int


def records_of(packed: Packed) -> Iterator[Record]:
    """The records, in the order in which they came."""
    data = memoryview(packed[0])
    return map(Record._make, RECORD.iter_unpack(data[HEAD.size : HEAD.size + RECORD.size * packed[NUMBER]]))


def text_of(packed: Packed, record: Record) -> str | None:
    """The text of a record, None where it has none."""
    if not record.marks & TEXT:
        return None
    begin = HEAD.size + RECORD.size * packed[NUMBER] + record.text_at
    return packed[0][begin : begin + record.text_size].decode()


def models_in(packed: Packed, agent: str) -> tuple[Any, ...]:
    """The model calls that an agent made as columns of `ModelCalls`, in the order of the clock."""
    found = None if NATIVE is None else NATIVE.models_in(packed, agent)
    return plain_models_in(packed, agent) if found is None else found


def tools_in(packed: Packed) -> tuple[Any, ...]:
    """Of the tool calls the last columns of `ToolCalls`: starts, ends, arguments, results and effects."""
    found = None if NATIVE is None else NATIVE.tools_in(packed)
    return plain_tools_in(packed) if found is None else found


def plain_models_in(packed: Packed, agent: str) -> tuple[Any, ...]:
    """The same in Python."""
    calls = _in_order(packed, 0)
    if not calls:
        return ((),) * 7
    told = [packed[1][call.told] for call in calls]
    return (
        shared(tuple([model or asked for model, asked, *_ in told])),
        shared(tuple([call.input if call.marks & INPUT else None for call in calls])),
        shared(tuple([call.output if call.marks & OUTPUT else None for call in calls])),
        shared(tuple([call.marks & FAILED > 0 for call in calls])),
        agent,
        *_times(calls),
    )


def plain_tools_in(packed: Packed) -> tuple[Any, ...]:
    """The same in Python."""
    calls = _in_order(packed, TOOL)
    told = [packed[1][call.told] for call in calls]
    return (*_times(calls), *(shared(tuple([call[at] for call in told])) for at in (2, 4, 5)))


def _in_order(packed: Packed, kind: int) -> Sequence[Record]:
    return sorted([one for one in records_of(packed) if one.marks & TOOL == kind], key=_ORDER)


def _times(calls: Sequence[Record]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple([call.start_ns for call in calls]), tuple([call.end_ns for call in calls])
