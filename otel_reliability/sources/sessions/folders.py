"""The folders in which coding agents keep their sessions, by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple


class SessionFolders(NamedTuple):
    """Folders of an agent's sessions: `below` those of `bases` in the home folder, or below the one
    that `variable` names.
    """

    agent: str
    variable: str
    bases: tuple[str, ...]
    below: tuple[str, ...]

    def paths(self, home: Path, env: Mapping[str, str]) -> Iterator[Path]:
        """Yield the folders, which may not exist."""
        given = env.get(self.variable)
        bases = [Path(given)] if given else [home / base for base in self.bases]
        for base in bases:
            yield from (base / part for part in self.below)


FOLDERS: Final = (
    SessionFolders(
        "claude-code", "CLAUDE_CONFIG_DIR", (".claude", ".config/claude"), ("projects",)
    ),
    SessionFolders("codex", "CODEX_HOME", (".codex",), ("sessions", "archived_sessions")),
    SessionFolders("gemini-cli", "GEMINI_CLI_HOME", ("",), (".gemini/tmp",)),
    SessionFolders("qwen-code", "QWEN_HOME", (".qwen",), ("projects", "tmp")),
    SessionFolders("copilot-cli", "COPILOT_HOME", (".copilot",), ("session-state",)),
    SessionFolders("opencode", "XDG_DATA_HOME", (".local/share",), ("opencode",)),
)


class LocalSessions(NamedTuple):
    """The folder of an agent that was found on this machine."""

    agent: str
    folder: Path


def local_folders(home: Path, env: Mapping[str, str]) -> list[LocalSessions]:
    """Return the folders of all known agents that exist."""
    return [
        LocalSessions(row.agent, path)
        for row in FOLDERS
        for path in row.paths(home, env)
        if path.is_dir()
    ]
