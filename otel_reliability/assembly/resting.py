"""Rows at rest: as bytes, while nobody looks at them.

The compiled reader makes the rows of a trace as bytes, and most runs are made of them as they are. What comes otherwise is laid
down when its run is told: it can still change for a minute, and hardly ever does. A service holds tens of thousands of spans in
that state, each a dozen objects that would be looked at no more but to be freed, long after they have left every cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from otel_reliability.assembly.rows import (
    ARGUMENTS,
    ASKED_MODEL,
    ASKS,
    CALL_ID,
    EFFECT,
    END,
    FAILED,
    ID,
    ID_BYTES,
    INPUT,
    MODEL,
    MORE,
    NAME,
    OUTPUT,
    PARENT,
    RESPONSE,
    RESULT,
    SOFTLY,
    START,
    Models,
    Rows,
    Tools,
)
from otel_reliability.model import packed
from otel_reliability.model.packed import Packed
from otel_reliability.model.span import AgentSpan, SpanId

NO_ROWS: Final[Packed] = (packed.HEAD.pack(0, 0), (), (None, None, 0), (None, None, 0), 0)
HERE: Final = 1
"""What `seek` finds: a span of that id is there,"""
AWAITED: Final = 2
"""something hangs on one,"""
DOUBTFUL: Final = 4
"""and two spans have one id, or one has an odd one."""
MOST_JOINED: Final = 512
"""As many things rows may refer to that are joined to others: no more come at once."""
_RECENT: Final = 16
"""So many of what was told last are looked through for what a row tells."""


def lay_down(models: Models, tools: Tools) -> Packed | None:
    """Rows as bytes; None where they hold what has no place there, such as ids of another length.

    >>> from otel_reliability.assembly.rows import Models, Tools
    >>> lay_down(Models(), Tools()) == NO_ROWS
    True
    """
    told, texts, records = list[Any](), bytearray(), list[bytes]()
    try:
        for at in range(0, len(models), Models.width):
            row = models[at : at + Models.width]
            place = _place(told, (row[MODEL], row[ASKED_MODEL], row[ASKS], row[MORE]))
            records.append(_record(row, row[INPUT], row[OUTPUT], row[RESPONSE], texts, place, 0))
        for at in range(0, len(tools), Tools.width):
            row = tools[at : at + Tools.width]
            place = _place(told, (row[NAME], None, row[ARGUMENTS], row[SOFTLY], row[RESULT], row[EFFECT]))
            records.append(_record(row, None, None, row[CALL_ID], texts, place, packed.TOOL))
    except _Odd:
        return None
    head = packed.HEAD.pack(len(models) // Models.width, len(tools) // Tools.width)
    return b"".join((head, *records, texts)), tuple(told), _alike(models), _alike(tools), len(records)


def wake(rest: Packed) -> tuple[Models, Tools]:
    """The rows again."""
    models, tools = Models(), Tools()
    _, told, of_models, of_tools, _ = rest
    parents: dict[bytes, bytes] = {}
    for record in packed.records_of(rest):
        marks, what = record.marks, told[record.told]
        parent = parents.setdefault(record.parent, record.parent) if marks & packed.PARENT else None
        begin = (record.id, parent, record.start_ns, record.end_ns, marks & packed.FAILED > 0)
        text = packed.text_of(rest, record)
        if marks & packed.TOOL:
            tools.extend((*begin, what[0], text, *what[2:]))
        else:
            model, asked, asks, more = what
            given = record.input if marks & packed.INPUT else None
            output = record.output if marks & packed.OUTPUT else None
            models.extend((*begin, model, asked, given, output, asks, text, more))
    for rows, alike in ((models, of_models), (tools, of_tools)):
        rows.shared, rows.remote, rows.span_kind = alike
        rows.parent = rows[PARENT - rows.width] if rows else None
    return models, tools


def ids_of(rest: Packed, others: Sequence[AgentSpan]) -> bytes | None:
    """The ids of the rows and of other spans, one after the other; None where one is not of the usual length."""
    found = [record.id for record in packed.records_of(rest)]
    found += [span.span_id for span in others]
    return b"".join(found) if all(len(one) == ID_BYTES for one in found) else None


def seek(rest: Packed, others: Sequence[AgentSpan], span_id: SpanId) -> int:
    """What rows and other spans have to do with a span of this id: `HERE`, `AWAITED` and `DOUBTFUL` added up.

    >>> seek(NO_ROWS, [], b"12345678")
    0
    """
    records = list(packed.records_of(rest))
    ids = [*[record.id for record in records], *[span.span_id for span in others]]
    parents = {record.parent for record in records if record.marks & packed.PARENT} | {
        span.parent_id for span in others
    }
    odd = any(len(one) != ID_BYTES for one in (*ids, span_id))
    is_doubtful = odd or len(set(ids)) < len(ids)
    return HERE * (span_id in ids) + AWAITED * (span_id in parents) + DOUBTFUL * is_doubtful


def joined(rest: Packed, more: Packed) -> Packed | None:
    """Both together; None where the rows of one are not like those of the other, or there is too much to refer to."""
    alike: list[Any] = []
    counts = tuple(zip(*(packed.HEAD.unpack_from(one[0]) for one in (rest, more)), strict=True))
    for at, (number, other) in enumerate(counts, 2):
        if number and other and rest[at] != more[at]:
            return None
        alike.append(more[at] if other and not number else rest[at])
    if len(more[1]) > MOST_JOINED or len(rest[1]) + len(more[1]) > packed.MOST:
        return None
    told, places = list(rest[1]), list[int]()
    for what in more[1]:
        recent = range(len(told) - 1, max(len(told) - 1 - _RECENT, -1), -1)
        place = next((at for at in recent if told[at] is what), len(told))
        if place == len(told):
            told.append(what)
        places.append(place)
    texts, others = (one[0][packed.HEAD.size + packed.RECORD.size * one[packed.NUMBER] :] for one in (rest, more))
    moved = (one._replace(told=places[one.told], text_at=one.text_at + len(texts)) for one in packed.records_of(more))
    records = (packed.RECORD.pack(*one) for one in (*packed.records_of(rest), *moved))
    data = b"".join((packed.HEAD.pack(*map(sum, counts)), *records, texts, others))
    return data, tuple(told), alike[0], alike[1], rest[packed.NUMBER] + more[packed.NUMBER]


class _Odd(Exception):
    """Something has no place in a record."""


def _alike(rows: Rows) -> tuple[Any, ...]:
    return rows.shared, rows.remote, rows.span_kind


def _place(told: list[Any], what: tuple[Any, ...]) -> int:
    """Where it stands what a row tells: most tell what those before them told."""
    for at in range(len(told) - 1, max(len(told) - 1 - _RECENT, -1), -1):
        known = told[at]
        if len(known) == len(what) and all(one is other for one, other in zip(known, what, strict=True)):
            return at
    if len(told) == packed.MOST:
        raise _Odd
    told.append(what)
    return len(told) - 1


def _record(row: Sequence[Any], given: Any, output: Any, text: Any, texts: bytearray, place: int, marks: int) -> bytes:
    """A row as a record; its text comes to the texts."""
    span_id, parent, failed, begin = row[ID], row[PARENT], row[FAILED], len(texts)
    if text is not None:
        marks |= packed.TEXT
        texts += _bytes(text)
    marks |= (
        (packed.FAILED if failed else 0)
        | (packed.PARENT if parent is not None else 0)
        | (packed.INPUT if given is not None else 0)
        | (packed.OUTPUT if output is not None else 0)
    )
    numbers = (row[START], row[END], 0 if given is None else given, 0 if output is None else output)
    ids = (span_id, parent if parent is not None else bytes(ID_BYTES))
    if type(failed) is not bool or any(type(one) is not bytes or len(one) != ID_BYTES for one in ids):
        raise _Odd
    if any(type(one) is not int or not -(1 << 63) <= one < 1 << 63 for one in numbers) or len(texts) >= 1 << 32:
        raise _Odd
    return packed.RECORD.pack(*ids, *numbers, begin, len(texts) - begin, place, marks)


def _bytes(text: Any) -> bytes:
    if type(text) is not str:
        raise _Odd
    try:
        return text.encode()
    except UnicodeEncodeError:  # a half of a character beyond the first 65,536
        raise _Odd from None
