"""Folders of session files as they lie on a disk: links, pipes, damage, files that may not be read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from otel_reliability.model.run import Run
from otel_reliability.recording import Recording
from otel_reliability.sources import chunks
from otel_reliability.sources.batch import Malformed, Reason
from tests.shared import shared
from tests.sources.session_writers import GEMINI_PROMPT, SESSION, at, gemini_call


def read(*folders: Path) -> tuple[list[Run], list[Malformed]]:
    runs: list[Run] = []
    problems: list[Malformed] = []
    recording = Recording(final=runs.extend, problem=problems.append)
    recording.read_all(folders)
    recording.close()
    return [run for run in runs if not run.nested], problems


@pytest.fixture
def session(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    shutil.copytree(shared("corpora/sessions/claude_code/tidy/home"), home)
    return next(home.rglob("*.jsonl"))


def add_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")


def add_links(folder: Path) -> None:
    (folder / "gone.jsonl").symlink_to("/nowhere/at/all")
    (folder / "self.jsonl").symlink_to("self.jsonl")
    (folder / "above").symlink_to("..")


def add_copy(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("-home-me-other"))


@pytest.mark.parametrize("add", [add_pipe, add_links, add_copy])
def test_what_lies_beside_sessions_changes_no_run(
    session: Path, add: Callable[[Path], None]
) -> None:
    wanted, _ = read(session.parent)
    add(session.parent)
    found, problems = read(session.parent.parent)

    assert problems == []
    assert [(run.path, run.tokens) for run in found] == [(run.path, run.tokens) for run in wanted]


@pytest.mark.parametrize("cut", [False, True])
def test_lines_that_were_cut_off_are_named_but_for_the_last(session: Path, cut: bool) -> None:
    """The last one may still be written."""
    lines = session.read_bytes().splitlines(keepends=True)
    if cut:
        lines.insert(len(lines) // 2, b'{"type": "assis\n')
    session.write_bytes(b"".join(lines) + b'{"type": "us')
    found, problems = read(session.parent)

    assert len(found) == 1
    place = f"{session}:{len(lines) // 2 + 1}"
    assert problems == ([Malformed(Reason.JSON, "not JSON", place)] if cut else [])


def test_damage_of_a_compressed_session_is_named(session: Path) -> None:
    packed = session.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(session.read_bytes())[:-2_000])
    session.unlink()
    found, problems = read(packed.parent)

    assert len(found) == 1
    assert [(each.reason, each.place) for each in problems] == [(Reason.TRUNCATED, str(packed))]


def test_a_damaged_database_costs_no_other_session(session: Path) -> None:
    tables = "".join(f"CREATE TABLE `{name}` (x)" for name in ("session", "message", "part"))
    database = session.parent / "opencode.db"
    database.write_bytes(b"SQLite format 3\0" + tables.encode() + b"\1" * 4_000)
    found, problems = read(session.parent)

    assert len(found) == 1
    assert [(each.reason, each.place) for each in problems] == [(Reason.KIND, str(database))]


def test_a_file_that_may_not_be_read_is_named(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = shutil.copy(session, session.with_name("closed.jsonl"))
    opened = chunks.Path.open

    def closed(path: Path, mode: str = "r") -> object:
        if str(path) == str(other):
            raise PermissionError(13, "Permission denied")
        return opened(path, mode)

    monkeypatch.setattr(chunks.Path, "open", closed)
    found, problems = read(session.parent)

    assert len(found) == 1
    assert problems == [
        Malformed(Reason.KIND, "it may not be read; check the permissions", str(other))
    ]


def test_a_line_as_long_as_a_file_is_passed_over(session: Path) -> None:
    wanted, _ = read(session.parent)
    line = json.dumps({"type": "attachment", "content": "x" * 500_000})
    session.write_text(f"{line}\n{session.read_text()}{line}")
    found, problems = read(session.parent)

    assert problems == []
    assert [run.path for run in found] == [run.path for run in wanted]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_is_read_whole_or_is_one_problem(tmp_path: Path, indent: int | None) -> None:
    answer = gemini_call("glob", "x")
    messages = [
        {"id": f"m{number}", "timestamp": at(number), **each}
        for number, each in enumerate([GEMINI_PROMPT, answer])
    ]
    header = {"sessionId": SESSION, "projectHash": "p", "startTime": at(0)}
    text = json.dumps({**header, "messages": messages}, indent=indent)
    chats = tmp_path / ".gemini/tmp/shop/chats"
    chats.mkdir(parents=True)
    (chats / "session-1.json").write_text(text)
    (chats / "session-2.json").write_text(text[:-40])

    found, problems = read(chats)

    assert [run.path for run in found] == [("glob",)]
    assert [(each.reason, each.place) for each in problems] == [
        (Reason.JSON, f"{chats / 'session-2.json'}:1")
    ]
