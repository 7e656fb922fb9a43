"""`--local`: the sessions of coding agents in the home folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import call
from tests.shared import shared

HOMES = {
    "CLAUDE_CONFIG_DIR": "claude_code",
    "CODEX_HOME": "codex",
    "GEMINI_CLI_HOME": "gemini_cli",
    "QWEN_HOME": "qwen_code",
    "COPILOT_HOME": "copilot_cli",
    "XDG_DATA_HOME": "opencode",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in HOMES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_local_reads_the_sessions_of_every_known_agent(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in HOMES.values():
        source = shared(f"corpora/sessions/{folder}/tidy/home")
        shutil.copytree(source, home, dirs_exist_ok=True)
    done = call(capsys, "runs", "--local", "-q")
    agents = {json.loads(line)["agent"] for line in done.out.splitlines()}

    assert done.code == 0
    assert agents == {
        "claude-code",
        "codex",
        "gemini-cli",
        "qwen-code",
        "copilot-cli",
        "opencode",
    }
    assert "claude-code: 1 session file in ~/.claude/projects" in done.err


def test_local_looks_where_the_agent_was_told_to_keep_its_sessions(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = shared("corpora/sessions/codex/tidy/home/.codex")
    shutil.copytree(source, home / "elsewhere")
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))

    assert "codex: 1 session file in ~/elsewhere/sessions" in call(capsys, "report", "--local").err


def test_local_without_any_session_says_so(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "report", "--local")

    assert (done.code, done.out) == (2, "")
    assert "no session files were found" in done.err
    assert (
        "codex in ~/.codex/sessions, ~/.codex/archived_sessions (CODEX_HOME is not set)" in done.err
    )


def test_local_without_any_session_names_the_folders_that_variables_name(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/nowhere")
    done = call(capsys, "report", "--local")

    assert "claude-code in /nowhere/projects (CLAUDE_CONFIG_DIR is set)" in done.err


def test_a_command_asks_for_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "report")

    assert done.code == 2
    assert "Missing argument 'FILE...'" in done.err
