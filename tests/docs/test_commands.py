"""What the pages have their readers type can be typed, and what they show is what is shown."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from otel_reliability.cli.app import app
from otel_reliability.demo.hosting import configured
from otel_reliability.demo.replay import record
from otel_reliability.report.build import report_of
from otel_reliability.report.recording import Recording, for_report
from tests.cli.command_line import call
from tests.docs import pages

README = pages.ROOT / "README.md"
RECORDING = "demo-spans.jsonl"
COMMANDS = [(page, command) for page in pages.PAGES for command in pages.commands(page)]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{pages.name(p)}-{' '.join(c)}" for p, c in COMMANDS])
def test_every_command_is_one_of_ours(page: Path, command: list[str]) -> None:
    """Its name, its options and their values are such as the program takes."""
    words, found, told = list(command), app, pages.PROGRAM
    while isinstance(found, click.Group):
        told, found, words = found.resolve_command(click.Context(found), words)

    assert found is not None
    assert found.make_context(told, words).params is not None


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo leaves."""
    path = tmp_path_factory.mktemp("readme") / RECORDING
    record(path)
    return path


@pytest.mark.parametrize(
    "command", [command for command in pages.commands(README) if RECORDING in command], ids=" ".join
)
def test_the_readme_s_commands_on_a_recording_do_their_work(
    command: list[str], recording: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are pasted, where the demo ran."""
    monkeypatch.chdir(recording.parent)
    done = call(capsys, *command)

    assert done.code == 0
    assert done.out.strip()


def test_the_readme_shows_the_demo_as_it_is(recording: Path) -> None:
    """Each agent with the score that the demo's service tells of the runs that the demo leaves."""
    settings = configured(str(recording.parent)).engine
    told = Recording(for_report(settings, settings.windows[0]))
    told.read(recording)
    shown = re.findall(r"^(\w+) .*? (\d+|–) +\d+$", README.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(shown) == sorted(
        (card.key.agent, "–" if card.score is None else f"{card.score:.0f}") for card in report_of(told.close()).agents
    )
