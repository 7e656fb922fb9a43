"""The table of session files: how each agent's are recognized, and who reads them.

Files are read in the order in which their sessions began, so that what was copied from one into
another counts where it was first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from otel_reliability.errors import SourceError
from otel_reliability.sources.batch import Batch, Malformed, Reason
from otel_reliability.sources.chunks import Progress
from otel_reliability.sources.sessions import (
    claude_code,
    codex,
    copilot_cli,
    gemini_cli,
    opencode,
    qwen_code,
)
from otel_reliability.sources.sessions.run import Seen, SessionPrompt


class SessionFormat(NamedTuple):
    """The session files of one agent: all `keys` and none of `without` stand in the head of a file;
    the keys of a database are its tables.

    `is_part`: whether a file belongs to another one, whose reader reads it.
    """

    agent: str
    keys: tuple[str, ...]
    without: tuple[str, ...]
    read: Callable[[Path, Seen, Progress | None], Iterator[SessionPrompt]]
    is_part: Callable[[Path], bool]


FORMATS: Final = (
    SessionFormat(
        "gemini-cli",
        ("sessionId", "projectHash"),
        (),
        gemini_cli.read,
        gemini_cli.is_part,
    ),
    SessionFormat(
        "qwen-code",
        ("sessionId", "uuid", "type", "parts"),
        (),
        qwen_code.read,
        qwen_code.is_part,
    ),
    SessionFormat(
        "copilot-cli",
        ("type", "data", "id", "parentId", "timestamp"),
        ("uuid",),
        copilot_cli.read,
        copilot_cli.is_part,
    ),
    SessionFormat(
        "opencode",
        ("session", "message", "part"),
        ("resourceSpans",),
        opencode.read,
        opencode.is_part,
    ),
    SessionFormat(
        "opencode",
        ("projectID", "directory", "version", "time"),
        (),
        opencode.read,
        opencode.is_part,
    ),
    SessionFormat(
        "codex",
        ("type", "payload", "timestamp"),
        (),
        codex.read,
        codex.is_part,
    ),
    SessionFormat(
        "codex",
        ("record_type", "timestamp", "id"),
        (),
        codex.read,
        codex.is_part,
    ),
    SessionFormat(
        "codex",
        ("session", "items", "instructions", "timestamp"),
        ("resourceSpans", "payload"),
        codex.read,
        codex.is_part,
    ),
    SessionFormat(
        "claude-code",
        ("sessionId", "uuid", "type", "timestamp"),
        ("parts", "projectHash"),
        claude_code.read,
        claude_code.is_part,
    ),
)

_SECOND: Final = 1_000_000_000
_DAY_S: Final = 86_400
MAX_INTERVALS: Final = 200_000
"""Intervals in which telemetry names sessions; more are joined to longer ones."""
_SESSION_KEYS: Final = (
    "session.id",
    "conversation.id",
    "thread.id",
    "gen_ai.conversation.id",
)
"""Attributes by which coding agents' telemetry names the session."""
_TIME: Final = re.compile(
    rb'"(?:timestamp|startTime)"\s*:\s*"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*)'
)


def format_of(keys: frozenset[str]) -> SessionFormat | None:
    """Return the format of a file with these keys in its head; None where it is no session."""
    fits = (
        each for each in FORMATS if keys.issuperset(each.keys) and keys.isdisjoint(each.without)
    )
    return next(fits, None)


class SessionFile(NamedTuple):
    """A session file, and when its session began, as text that sorts: there may be many thousands
    of files, so nothing else of them is kept.
    """

    path: Path
    format: SessionFormat
    time: bytes

    def began(self) -> tuple[bytes, str]:
        """Return the place of the file in the order of reading."""
        return self.time, self.path.name


def session_file(path: Path, form: SessionFormat, head: bytes) -> SessionFile:
    """Return a session file, by its first bytes."""
    found = _TIME.search(head)
    return SessionFile(path, form, found[1] if found else b"")


class Telemetry:
    """When telemetry names each session: what it reports of a session counts, and the file of the
    session does not repeat it. `repeated` counts the prompts of files that telemetry reports too.

    Of each session the intervals of `unit` seconds are kept that name it, up to `limit` over all
    sessions. Beyond, the unit doubles, up to a day; then intervals are forgotten.
    """

    def __init__(self, limit: int = MAX_INTERVALS) -> None:
        self.repeated = 0
        self.unit = 1
        self._limit = limit
        self._intervals: set[tuple[int, int]] = set()

    def see(self, batch: Batch) -> None:
        """Note the sessions that spans and log events name."""
        for span in batch.spans:
            self._note(span.attributes, span.start_ns)
        for log in batch.logs:
            self._note(log.attributes, log.time_ns)

    def has(self, run: SessionPrompt) -> bool:
        """Return whether telemetry names the session of a run while it went on."""
        if not self._intervals:
            return False
        first = run.start_ns // _SECOND
        last = min(max(run.start_ns, run.last_ns) // _SECOND, first + _DAY_S)
        session = hash(run.session_id)
        intervals = range(first // self.unit, last // self.unit + 1)
        return any((session, at) in self._intervals for at in intervals)

    def _note(self, attributes: Mapping[str, Any], time_ns: int) -> None:
        for key in _SESSION_KEYS:
            found = attributes.get(key)
            if isinstance(found, str):
                self._intervals.add((hash(found), time_ns // _SECOND // self.unit))
        while len(self._intervals) > self._limit and self.unit < _DAY_S:
            self.unit *= 2
            self._intervals = {(session, at // 2) for session, at in self._intervals}
        while len(self._intervals) > self._limit:
            self._intervals.pop()


def read_sessions(
    files: Sequence[SessionFile],
    telemetry: Telemetry,
    progress: Callable[[Path], Progress | None] = lambda _: None,
) -> Iterator[Batch]:
    """Read session files, a batch for each run that telemetry does not report too."""
    seen = Seen()
    for file in sorted(files, key=SessionFile.began):
        try:
            if not file.format.is_part(file.path):
                for run in file.format.read(file.path, seen, progress(file.path)):
                    if telemetry.has(run):
                        telemetry.repeated += 1
                    else:
                        yield run.batch()
        except SourceError as error:  # it may be gone, or a damaged database
            detail = str(error).partition(": ")[2]
            seen.problems.append(Malformed(Reason.KIND, detail, str(file.path)))
        if seen.problems:
            yield Batch(malformed=[*seen.problems])
            seen.problems.clear()


def files_below(folders: Iterable[Path]) -> list[Path]:
    """Return the files in these folders and below, by name, and the folders that cannot be read.

    Pipes, sockets and links to nothing are passed over, and links to folders not followed.
    """
    closed: list[Path] = []

    def note(error: OSError) -> None:
        closed.append(Path(error.filename))

    found = (
        Path(at) / name
        for folder in folders
        for at, _, names in os.walk(folder, onerror=note)
        for name in names
    )
    return sorted([*filter(os.path.isfile, found), *closed])
