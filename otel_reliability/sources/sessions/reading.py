"""The JSON objects of a session file: one a line, or an indented one that is the whole file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from otel_reliability.sources.batch import Malformed, Reason
from otel_reliability.sources.chunks import Chunks, Progress
from otel_reliability.sources.lines import LONGEST, documents
from otel_reliability.sources.otlp_json import record

_ATTACHED: Final = frozenset({"inlineData", "fileData"})


def is_attached(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a message in Gemini's form is a picture or another file."""
    return not _ATTACHED.isdisjoint(part)


_EXIT_CODE: Final = re.compile(
    r"^Exit Code: (-?\d+)"
    r"(?:\n(?:Signal|Background PIDs|Process Group PGID): [^\n]*)*"
    r"\s*(?:</untrusted_context>)?\s*\Z",
    re.MULTILINE,
)
_EXIT_CODE_CHARS: Final = 1_000
"""Characters at the end of a result in which Gemini CLI and its forks report the exit code."""


def exit_code_of(result: str) -> int | None:
    r"""Return the exit code that Gemini CLI and its forks write after what a command printed.

    >>> exit_code_of("Output: Exit Code: 3\nExit Code: 1\nSignal: 0")
    1
    >>> exit_code_of("Output: Exit Code: 3\nall is well\nProcess Group PGID: 7")
    """
    found = _EXIT_CODE.search(result[-_EXIT_CODE_CHARS:])
    return None if found is None else int(found[1])


MAX_PROBLEMS: Final = 1_000
"""Lines of a file that cannot be read and are kept as problems."""


def objects_of(
    path: Path, progress: Progress | None = None, problems: list[Malformed] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file. `problems` receives what could not be read, but for the last
    line: that of an agent that was killed is cut off, that of a running one still written. Of a
    document that is one line or many nothing is left then, so it is a problem.
    """
    decode = msgspec.json.Decoder().decode
    chunks = Chunks(path, progress)
    found: list[Malformed] = []
    for line in documents(chunks):
        value: Any = None
        try:
            if line.text and line.text.strip(b"\0\r "):
                value = decode(line.text)
        except (msgspec.DecodeError, RecursionError):
            if (line.ended or line.number == 1) and len(found) < MAX_PROBLEMS:
                found.append(Malformed(Reason.JSON, "not JSON", f"{path}:{line.number}"))
        if line.text is None:
            detail = f"a line longer than {LONGEST} bytes"
            found.append(Malformed(Reason.LINE_TOO_LONG, detail, f"{path}:{line.number}"))
        if given := record(value):
            yield given
    if problems is not None:
        problems += found
        problems += [chunks.damage._replace(place=str(path))] if chunks.damage else []
