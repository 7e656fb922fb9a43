"""Sessions of opencode: its database `opencode.db`, before 1.2 the same as files of JSON, or what
`opencode export` writes of one.

A session has messages, a message has parts; a sub-agent is a session that names its parent. A fork
is a session of copies with new ids, whose calls keep theirs.

Source: recordings of releases 1.1.11 and 1.18.33.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from otel_reliability.errors import SourceError
from otel_reliability.sources.batch import Malformed, Reason
from otel_reliability.sources.chunks import Progress
from otel_reliability.sources.otlp_json import items, record, text, whole
from otel_reliability.sources.sessions.run import (
    CallStatus,
    Compaction,
    Seen,
    SessionPrompt,
    SessionTokens,
    resource_of,
)

AGENT: Final = "opencode"
_MILLISECOND: Final = 1_000_000
_NO_TIME: Final = 2**63 // _MILLISECOND
"""Milliseconds that are no time that anything can have."""
_REJECTED: Final = (
    "The user rejected permission",
    "The user has specified a rule",
    "The user dismissed this question",
)
_RULE: Final = "specified a rule which prevents you"
_SHELL: Final = "bash"
_ABORTED: Final = re.compile(r"<(\w+)>[^<]*User aborted the command[^<]*</\1>\s*\Z")
"""Ends the output of a command that the user aborted."""
_TYPED: Final = frozenset({"text", "file", "agent", "subtask"})
"""The parts of a message of which one is what a user typed or attached."""
_OF_USER: Final = "The following tool was executed by the user"
"""The prompt that stands for a command that the user executes."""
_CANCELLED: Final = re.compile(r"Tool execution aborted|Cancelled\Z")
_STOPPED: Final = "MessageAbortedError"


class _Store(Protocol):
    """The files or the database of sessions."""

    def sessions(self) -> Iterator[dict[str, Any]]:
        """Yield the sessions, by when they began."""
        ...

    def messages(self, session: str) -> list[dict[str, Any]]:
        """Return the messages of a session in order."""
        ...

    def parts(self, message: str) -> list[dict[str, Any]]:
        """Return the parts of a message in order."""
        ...


class _Database:
    def __init__(self, path: Path) -> None:
        try:
            # read in place: a copy would lack the write-ahead log
            self._db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        except sqlite3.Error as error:
            raise SourceError(f"{path}: cannot be opened ({type(error).__name__}).") from error

    def sessions(self) -> Iterator[dict[str, Any]]:
        columns = "id, parent_id, directory, version, time_created"
        rows = self._db.execute(f"SELECT {columns} FROM session ORDER BY time_created, id")  # noqa: S608  a constant
        for row in rows.fetchall():
            yield dict(zip(("id", "parentID", "directory", "version", "time"), row, strict=True))

    def messages(self, session: str) -> list[dict[str, Any]]:
        query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        return [_parsed(row) for row in self._db.execute(query, (session,))]

    def parts(self, message: str) -> list[dict[str, Any]]:
        query = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
        return [_parsed(row) for row in self._db.execute(query, (message,))]


class _Files:
    """Sessions as files below `storage`; `path` is the file of one session."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._storage = path.parents[2]

    def sessions(self) -> Iterator[dict[str, Any]]:
        yield _object(self._path)

    def messages(self, session: str) -> list[dict[str, Any]]:
        return [_object(file) for file in sorted((self._storage / "message" / session).glob("*"))]

    def parts(self, message: str) -> list[dict[str, Any]]:
        return [_object(file) for file in sorted((self._storage / "part" / message).glob("*"))]


class _Export:
    """One session, with its messages and their parts; sub-agents are sessions of their own."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._session = record(document.get("info"))
        given = [record(message) for message in items(document.get("messages"))]
        self._messages = [record(message.get("info")) for message in given]
        self._parts = {
            text(record(message.get("info")).get("id")): items(message.get("parts"))
            for message in given
        }

    def sessions(self) -> Iterator[dict[str, Any]]:
        yield self._session

    def messages(self, session: str) -> list[dict[str, Any]]:
        return self._messages if session == self._session.get("id") else []

    def parts(self, message: str) -> list[dict[str, Any]]:
        return [record(part) for part in self._parts.get(message, ())]


def _store(path: Path, seen: Seen) -> _Store:
    try:
        with path.open("rb") as file:
            is_document = file.read(1) == b"{"
    except OSError as error:
        raise SourceError(f"{path}: cannot be opened ({error.strerror}).") from error
    document = _object(path) if is_document else {}
    if is_document and not document:
        detail = "the document is no JSON, or only a part of it"
        seen.problems.append(Malformed(Reason.JSON, detail, str(path)))
    if "messages" in document:
        return _Export(document)
    return _Files(path) if is_document else _Database(path)


def read(path: Path, seen: Seen, progress: Progress | None = None) -> Iterator[SessionPrompt]:
    """Read the runs of a database, or of the file of a session."""
    store = _store(path, seen)
    try:
        for session in store.sessions():
            if not session.get("parentID"):
                yield from _runs(store, session, seen)
    except sqlite3.Error as error:
        raise SourceError(f"{path}: cannot be read ({type(error).__name__}).") from error
    size = path.stat().st_size
    if progress is not None:
        progress(size, size)


def is_part(_: Path) -> bool:
    """Return False: sub-agents are passed over where sessions are listed."""
    return False


def _runs(store: _Store, session: Mapping[str, Any], seen: Seen) -> Iterator[SessionPrompt]:
    run: SessionPrompt | None = None
    name = text(session.get("id"))
    sender = resource_of(AGENT, text(session.get("version")), text(session.get("directory")))
    for message in _messages(store, name):
        at = _time(record(message.get("time")).get("created"))
        if message.get("role") == "user":
            parts = store.parts(text(message.get("id")))
            compaction = next((part for part in parts if part.get("type") == "compaction"), None)
            typed = any(
                text(part.get("type")) in _TYPED and part.get("synthetic") is not True
                for part in parts
            )
            if compaction is not None and run is not None and compaction.get("auto") is True:
                run.compactions.append(Compaction(at, trigger="auto"))
            elif typed or compaction is not None:
                if run is not None and not run.repeats:
                    yield run
                run = SessionPrompt(AGENT, name, text(message.get("id")), at, sender, at)
                run.says([part for part in parts if part.get("synthetic") is not True])
                run.repeats = not seen.add("prompt", f"opencode:{at}:{run.prompt}")
                if compaction is not None:
                    run.compactions.append(Compaction(at, trigger="manual"))
        elif run is not None and message.get("role") == "assistant":
            _add(store, run, message, at, seen)
    if run is not None and not run.repeats:
        yield run


def _messages(store: _Store, session: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of a session, without commands of the user and what they printed."""
    of_user: set[str] = set()
    for message in store.messages(session):
        name = text(message.get("id"))
        is_user = message.get("role") == "user"
        if is_user and any(part.get("text") == _OF_USER for part in store.parts(name)):
            of_user.add(name)
        elif text(message.get("parentID")) not in of_user:
            yield message


def _add(
    store: _Store,
    run: SessionPrompt,
    message: Mapping[str, Any],
    at: int,
    seen: Seen,
    *,
    inner: bool = False,
) -> None:
    if not inner:
        error = record(message.get("error")).get("name")
        run.stopped = run.stopped or error == _STOPPED
        run.failed = error is not None and error != _STOPPED  # of the newest answer
    ended = _time(record(message.get("time")).get("completed")) or at
    parts = store.parts(text(message.get("id")))
    kinds = [part.get("type") for part in parts]
    if kinds.count("step-start") > kinds.count("step-finish"):
        # tokens are written when a step ends: those of an aborted one are nowhere
        run.lacks_models = True
    for number, part in enumerate(parts):
        kind = part.get("type")
        tokens = record(part.get("tokens"))
        if kind == "step-finish" and seen.add("answer", f"opencode:{at}:{number}:{tokens}"):
            cache = record(tokens.get("cache"))
            given = _sum(tokens.get("input"), cache.get("read"), cache.get("write"))
            output = _sum(tokens.get("output"), tokens.get("reasoning"))
            key = text(part.get("id"))
            cached, written = whole(cache.get("read")), whole(cache.get("write"))
            spent = SessionTokens(given, output, cached, written)
            run.model_call(key, ended, text(message.get("modelID")), spent)
        elif kind == "tool":
            _add_call(store, run, part, at, seen, inner=inner)


def _add_call(
    store: _Store,
    run: SessionPrompt,
    part: Mapping[str, Any],
    at: int,
    seen: Seen,
    *,
    inner: bool,
) -> None:
    call_id, name = text(part.get("callID")), text(part.get("tool"))
    state = record(part.get("state"))
    times = record(state.get("time"))
    started = _time(times.get("start")) or at
    # some providers number the calls of each answer anew
    if not seen.add("call", f"{started}\0{call_id}"):
        return
    run.asked(call_id, name, state.get("input"), started, inner=inner)
    result = text(state.get("output")) or text(state.get("error"))
    status = _status(state, result, is_shell=name == _SHELL)
    run.answered(call_id, _time(times.get("end")) or at, status, result)
    agent = text(record(state.get("metadata")).get("sessionId"))
    work = store.messages(agent) if agent else []
    if agent and not work:
        run.lacks_tools = run.lacks_models = True
    for message in work:
        if message.get("role") == "assistant":
            created = _time(record(message.get("time")).get("created"))
            _add(store, run, message, created, seen, inner=True)


def _status(state: Mapping[str, Any], result: str, *, is_shell: bool) -> CallStatus:
    status = state.get("status")
    if status not in ("completed", "error"):
        return CallStatus.UNFINISHED
    if status == "error":
        if result.startswith(_REJECTED) or _RULE in result:
            return CallStatus.REJECTED
        return CallStatus.CANCELLED if _CANCELLED.match(result) else CallStatus.FAILED
    if is_shell and _ABORTED.search(result[-2_000:]):
        return CallStatus.CANCELLED
    return CallStatus.FAILED if whole(record(state.get("metadata")).get("exit")) else CallStatus.OK


def _sum(*counts: object) -> int | None:
    known = [count for count in map(whole, counts) if count is not None]
    return sum(known) if known else None


def _time(value: object) -> int:
    given = whole(value) or 0
    return given * _MILLISECOND if 0 <= given < _NO_TIME else 0


def _parsed(row: tuple[str, str]) -> dict[str, Any]:
    try:
        return {**record(msgspec.json.decode(row[1])), "id": row[0]}
    except msgspec.DecodeError:
        return {}


def _object(file: Path) -> dict[str, Any]:
    try:
        return record(msgspec.json.decode(file.read_bytes()))
    except (OSError, msgspec.DecodeError):
        return {}
