"""A file of OTLP-JSON lines that grows, read as it does: what is new since the last look, and no more of it held than a line."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.errors import ConfigurationError, SourceError, UndecodableBody
from otel_reliability.model.run import CloseReason
from otel_reliability.pages.course import Courses
from otel_reliability.service.api import Agents
from otel_reliability.sources.batch import Batch
from otel_reliability.sources.lines import LONGEST
from otel_reliability.sources.otlp_json import decode_json, read_file

CHUNK: Final = 256 * 1024
PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How files begin that gzip or zstd wrote: their end is not where lines are added."""


class Tail:
    """The lines of a file, and those that come, like `tail -F`: a file that took its name, or that was cut, is read anew."""

    def __init__(self, path: Path, longest: int = LONGEST) -> None:
        """Raises `SourceError` where there is no such file, `ConfigurationError` where it cannot grow."""
        self._path, self._longest = path, longest
        self._file = self._opened()
        if self._file.peek(4).startswith(PACKED):
            self._file.close()
            remedy = "unpack it, or show it as it is with --once"
            raise ConfigurationError("watch", str(path), "a file of lines, which can be followed", remedy)
        self._begin()

    def lines(self) -> Iterator[bytes]:
        """Every line that is whole by now. Beyond the bound one is passed over."""
        while piece := self._file.read(CHUNK):
            yield from self._split(piece)
        if self._held and self._is_whole():
            yield self._taken()
        if self._moved():
            self._file.close()
            self._file = self._opened()
            self._begin()

    def close(self) -> None:
        """Nobody looks any more."""
        self._file.close()

    def _begin(self) -> None:
        self._held, self._size, self._tried = list[bytes](), 0, 0

    def _opened(self) -> BufferedReader:
        try:
            return self._path.open("rb")
        except OSError as error:
            raise SourceError(
                f"{self._path}: cannot be read ({error.strerror}); give a file of OTLP-JSON lines, or the URL of a service."
            ) from error

    def _split(self, piece: bytes) -> Iterator[bytes]:
        first, *others = piece.split(b"\n")
        self._hold(first)
        for part in others:
            yield self._taken()
            self._hold(part)

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            self._held.clear()
        elif part:
            self._held.append(part)

    def _taken(self) -> bytes:
        line = b"".join(self._held)
        self._begin()
        return line

    def _is_whole(self) -> bool:
        """Whether the last line, which nothing has ended, can be read all the same; asked once for as much as there is."""
        if self._tried == self._size:
            return False
        self._tried = self._size
        last = self._held[-1].rstrip()
        if not last.endswith(b"}"):
            return False
        try:
            decode_json(b"".join(self._held))
        except UndecodableBody:
            return False
        return True

    def _moved(self) -> bool:
        try:
            now, held = self._path.stat(), os.fstat(self._file.fileno())
        except OSError:
            return False  # the name is free for a moment, while another file takes it
        return (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino) or now.st_size < self._file.tell()


class Followed:
    """The agents of a file, as a service tells them that was sent its spans."""

    def __init__(self, path: str, settings: Settings, *, once: bool) -> None:
        self.unread = 0
        """Lines and spans that could not be read."""
        self.spans = 0
        self._tail = None if once else Tail(Path(path))
        self._engine = Engine(settings, clock=time.monotonic, wall=None)
        self._agents = Agents(self._engine, Courses(self._engine))
        if once:
            for batch in read_file(path):
                self._take(batch)
            self._engine.flush(CloseReason.END_OF_INPUT)

    def read(self, patience: float) -> bool:
        """Read what is new, for at most so many seconds. False: there is more."""
        until = time.monotonic() + patience
        for line in self._tail.lines() if self._tail is not None else ():
            self._see(line)
            if time.monotonic() >= until:
                return False
        self._rest()
        return True

    def agents(self) -> list[dict[str, Any]]:
        """A line for each agent."""
        page = self._agents.page(limit=self._engine.settings.limits.agents)
        return page["agents"]

    def close(self) -> None:
        """Let the file go."""
        if self._tail is not None:
            self._tail.close()

    def _see(self, line: bytes) -> None:
        if line.strip():
            try:
                self._take(decode_json(line))
            except UndecodableBody:
                self.unread += 1

    def _take(self, batch: Batch) -> None:
        self.spans += len(batch.spans)
        self.unread += len(batch.malformed)
        self._engine.receive(batch.spans)
        self._engine.receive_logs(batch.logs)
        self._engine.receive_evaluations(batch.evaluations)
        self._rest()

    def _rest(self) -> None:
        """Meet deadlines, and let go of what nobody here takes."""
        self._engine.tick()
        for take in (self._engine.take_settled, self._engine.take_revised):
            take()
        self._engine.take_scored()
        self._engine.take_changes()
