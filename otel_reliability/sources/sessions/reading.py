"""The JSON objects of a session file, one a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from otel_reliability.sources.chunks import Chunks, Progress
from otel_reliability.sources.lines import split
from otel_reliability.sources.otlp_json import record


def objects_of(path: Path, progress: Progress | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file's lines. A line that is none is passed over: that of an agent
    that was killed may be cut off, or still be written.
    """
    decode = msgspec.json.Decoder().decode
    for line in split(Chunks(path, progress)):
        if line.text:
            try:
                found = record(decode(line.text))
            except (msgspec.DecodeError, RecursionError):
                continue
            if found:
                yield found
