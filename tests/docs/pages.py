"""The pages people read: their links, headings and commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
PATTERNS: Final = ("*.md", "docs/**/*.md", "collector_config/*.md", "docker/*.md", "native/*.md")
PAGES: Final = tuple(page for pattern in PATTERNS for page in sorted(ROOT.glob(pattern)))

FENCE: Final = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
SHELLS: Final = frozenset({"sh", "bash", "console"})
SHELL: Final = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+?) -->\s*)?^ *```(?:sh|bash|console)\b[^\n]*\n(?P<block>.*?)^ *```",
    re.DOTALL | re.MULTILINE,
)
HEADING: Final = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
TARGET: Final = re.compile(r"\]\(([^)\s]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
ELSEWHERE: Final = re.compile(r"[a-z]+:")
ENDS: Final = frozenset({"|", "&&", "&", ";"})
"""Words that end a command."""
PROGRAM: Final = "otel-reliability"


class Shell(NamedTuple):
    """A shell block of a page: its commands, and why no test runs it (empty if one does)."""

    page: Path
    commands: list[list[str]]
    why: str


def name(page: Path) -> str:
    """Return the page's path from the root of the project."""
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def targets(page: Path) -> Iterator[str]:
    for found in TARGET.finditer(prose(page)):
        target = found[1] or found[2]
        if not ELSEWHERE.match(target):
            yield target


def anchors(page: Path) -> set[str]:
    return {slug(heading) for heading in HEADING.findall(prose(page))}


def slug(heading: str) -> str:
    """Return a heading as an anchor.

    >>> slug("`service.tls`: who may come, and how?")
    'servicetls-who-may-come-and-how'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def shells(page: Path) -> Iterator[Shell]:
    for found in SHELL.finditer(page.read_text(encoding="utf-8")):
        lines = _lines(found["block"].replace("\\\n", " "))
        yield Shell(
            page,
            [command for line in lines for command in _split(line)],
            (found["why"] or "").strip(),
        )


def _lines(block: str) -> Iterator[list[str]]:
    """Yield the words of each line; a quoted text may span lines."""
    pending = ""
    for line in block.splitlines():
        pending += line
        try:
            yield shlex.split(pending, comments=True)
        except ValueError:
            pending += "\n"
        else:
            pending = ""


def _split(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    words = words[: words.index(">")] if ">" in words else words
    for word in [*words, ";"]:
        if word in ENDS:
            if command:
                yield command
            command = []
        else:
            command.append(word)
