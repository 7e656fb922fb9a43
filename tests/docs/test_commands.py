"""Commands on the pages: each can be parsed, and each runs in a test or says why not."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from otel_reliability.cli.app import app
from otel_reliability.demo.hosting import configured
from otel_reliability.demo.replay import record
from otel_reliability.recording import Recording, for_report
from otel_reliability.report.build import report_of
from tests.cli.command_line import call
from tests.docs import pages

RECORDING = "demo-spans.jsonl"
SHELLS = [shell for page in pages.PAGES for shell in pages.shells(page)]
OURS = [
    (shell, command[1:])
    for shell in SHELLS
    for command in shell.commands
    if command[0] == pages.PROGRAM
]
RUN = [(shell, command) for shell, command in OURS if not shell.why]


def names(commands: list[tuple[pages.Shell, list[str]]]) -> list[str]:
    return [f"{pages.name(shell.page)}-{' '.join(command)}" for shell, command in commands]


@pytest.mark.parametrize(("shell", "command"), OURS, ids=names(OURS))
def test_command_is_accepted(shell: pages.Shell, command: list[str]) -> None:
    words = list(command)
    found = app
    name = pages.PROGRAM
    while isinstance(found, click.Group):
        name, found, words = found.resolve_command(click.Context(found), words)

    assert found is not None
    assert found.make_context(name, words).params is not None


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_block_that_is_not_run_says_why(page: Path) -> None:
    """Only commands of this program are run; `<!-- not run: reason -->` stands above every other
    block.
    """
    unexplained = [
        command
        for shell in pages.shells(page)
        if not shell.why
        for command in shell.commands
        if command[0] != pages.PROGRAM
    ]

    assert not unexplained


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / RECORDING
    record(path)
    return path


@pytest.fixture(scope="module")
def beginning(recording: Path) -> bytes:
    """A fourth of it, for commands on files of one's own."""
    lines = recording.read_bytes().splitlines(keepends=True)
    return b"".join(lines[: len(lines) // 4])


@pytest.mark.parametrize(("shell", "command"), RUN, ids=names(RUN))
def test_command_succeeds(
    shell: pages.Shell,
    command: list[str],
    recording: Path,
    beginning: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in command:
        if word.endswith(".jsonl"):
            (tmp_path / word).write_bytes(
                recording.read_bytes() if word == RECORDING else beginning
            )
    done = call(capsys, *command)

    assert done.code == 0, done.err
    assert done.out.strip()


def test_getting_started_shows_the_demo_as_it_is(recording: Path) -> None:
    settings = configured(str(recording.parent))
    rebuilt = Recording(for_report(settings, settings.windows[0]))
    rebuilt.read(recording)
    page = (pages.ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    shown = re.findall(r"^(\w+) .*? (\d+|–) +\d+$", page, re.MULTILINE)

    assert sorted(shown) == sorted(
        (card.key.agent, "–" if card.score is None else f"{card.score:.0f}")
        for card in report_of(rebuilt.close()).agents
    )
