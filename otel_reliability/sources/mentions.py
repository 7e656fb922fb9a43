"""The line of recordings that names a trace last: after it nothing of the trace can come.

Files are passed over once as bytes, at a hundred times the speed of reading them. Whatever stands
where a trace id may stand counts, be it of a span, of a link, of a log record, or of something
broken: naming too many only keeps a trace for longer.
"""

from __future__ import annotations

import os
import re
from array import array
from binascii import unhexlify
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import EVALUATION, TraceId
from otel_reliability.sources.chunks import CHUNK, STDIN, Chunks, Progress
from otel_reliability.sources.lines import documents
from otel_reliability.sources.otlp_json import BYTE_ORDER_MARK, decode_request, parse

SLOTS: Final = 1 << 21
"""Places for the last lines of traces. Of traces that share one the last line of any counts for
all: they are kept longer.
"""

_KEY: Final = b'"traceId"'
_SPACE: Final = rb"[ \t\r\n]"
_NAMED: Final = re.compile(rb'"traceId"%b{0,8}:%b{0,8}"([0-9a-fA-F]{32})"' % (_SPACE, _SPACE))
_UNCLEAR: Final = re.compile(
    rb'"traceId"(?:%b{9}|%b{0,8}:(?:%b{9}|%b{0,8}"[^"\\]{0,192}\\))'
    % (_SPACE, _SPACE, _SPACE, _SPACE)
)
"""An id behind a wide gap, or written with escapes."""
_ESCAPE: Final = rb"\u00"
_ESCAPED_WORD: Final = re.compile(rb"\\u00(?:2[eE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])")
"""Letters, digits, dots or underscores written as escapes, which no encoder does: a key or an id
may hide in them.
"""
_REACH: Final = 512
"""Bytes that a name with its id never exceeds: so many are searched again with the next piece."""
_LOGS: Final = b'"resourceLogs"'
_JUDGEMENT: Final = EVALUATION.encode()


class Scanned(NamedTuple):
    """A file that was passed over; its size is None where it could not be read to its end."""

    size: int | None
    first_line: int


class Mentions:
    """The last line of each trace in some files that are read one after the other, their lines
    counted as those of one.

    `files` says of each how many bytes of it lay on disk, and the number of its first line.
    `is_clear`: all was understood.
    """

    def __init__(self) -> None:
        self._last = array("Q", bytes(8 * SLOTS))
        self._line = 0
        self.files: list[Scanned] = []
        self.is_clear = True
        self._has_logs = self._has_judgements = False

    def scan(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Note what the next file names; it begins a line of its own. Raises `SourceError` where it
        cannot be read.
        """
        self._line += 1
        first = self._line
        chunks = Chunks(path, progress)
        held: list[bytes] = []
        held_size = 0
        for piece in chunks:
            held.append(piece)
            held_size += len(piece)
            if held_size >= CHUNK:
                held = [self._note(b"".join(held), held_size - _REACH)]
                held_size = len(held[0])
        self._note(b"".join(held), held_size)
        self.files.append(Scanned(None if chunks.damage else chunks.read, first))

    def last(self, traces: Sequence[TraceId]) -> list[int]:
        """The line after which each of these traces is not named any more. For others it may be a
        later line than theirs.
        """
        return [self._last[hash(trace) % SLOTS] for trace in traces]

    @property
    def may_judge_responses(self) -> bool:
        """Return whether there may be evaluations among log records, which name a response and no
        trace at times.
        """
        return self._has_logs and self._has_judgements

    def _note(self, text: bytes, end: int) -> bytes:
        """Note what is named before `end`. Gives the rest."""
        named = at = 0
        for found in _NAMED.finditer(text):
            start = found.start()
            if start >= end:
                break
            self._line += text.count(b"\n", at, start)
            self._last[hash(unhexlify(found[1])) % SLOTS] = self._line + found[0].count(b"\n")
            named = named + 1
            at = start
        self._line += text.count(b"\n", at, end)
        if text.count(_KEY, 0, end + len(_KEY) - 1) != named and _UNCLEAR.search(text):
            self.is_clear = False
        if _ESCAPE in text and _ESCAPED_WORD.search(text):
            self.is_clear = False
        self._has_logs = self._has_logs or _LOGS in text
        self._has_judgements = self._has_judgements or _JUDGEMENT in text
        return text[end:]


def mentions_in(
    files: Sequence[str | os.PathLike[str]], progress: Progress | None = None
) -> Mentions | None:
    """Return where these files name each trace last. None where that cannot be known: one of them
    is a pipe, which can be read only once; an id is written in a way that is not understood; or an
    evaluation names no trace, only a response.
    """
    if not all(_can_be_read_twice(file) for file in files):
        return None
    found = Mentions()
    for file in files:
        found.scan(file, progress)
        if not found.is_clear:
            return None
    return None if found.may_judge_responses and any(map(_judges_responses, files)) else found


def _can_be_read_twice(file: str | os.PathLike[str]) -> bool:
    return os.fspath(file) != STDIN and Path(file).is_file()


def _judges_responses(file: str | os.PathLike[str]) -> bool:
    """Return whether a log record in a file evaluates a response whose trace it does not name."""
    lines = (line.text for line in documents(Chunks(file)))
    return any(
        _names_no_trace(text.removeprefix(BYTE_ORDER_MARK))
        for text in lines
        if text is not None and _LOGS in text
    )


def _names_no_trace(line: bytes) -> bool:
    try:
        judged = decode_request(parse(line)).evaluations
    except UndecodableBody:
        return False
    return any(evaluation.trace_id is None and evaluation.response_id for evaluation in judged)
