"""The pages people read, and what stands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("*.md", "docs/**/*.md", "collector_config/*.md", "docker/*.md")
PAGES: Final = tuple(page for pattern in FOLDERS for page in sorted(ROOT.glob(pattern)))

FENCE: Final = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
HEADING: Final = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
TARGET: Final = re.compile(r"\]\(([^)\s]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
ELSEWHERE: Final = re.compile(r"[a-z]+:")
SHELLS: Final = frozenset({"sh", "bash", "console"})
ENDS: Final = frozenset({"|", ">", "&&", "&", ";"})
"""What stands behind a command."""
PROGRAM: Final = "otel-reliability"


def name(page: Path) -> str:
    """The page from the root of the project."""
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def targets(page: Path) -> Iterator[str]:
    """Where its links and pictures lead, within the project."""
    for found in TARGET.finditer(prose(page)):
        target = found[1] or found[2]
        if not ELSEWHERE.match(target):
            yield target


def anchors(page: Path) -> set[str]:
    """What links to sections of the page may name, by the rule of those who show it."""
    return {slug(heading) for heading in HEADING.findall(prose(page))}


def slug(heading: str) -> str:
    """A heading as an anchor.

    >>> slug("`service.tls`: who may come, and how?")
    'servicetls-who-may-come-and-how'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def commands(page: Path) -> Iterator[list[str]]:
    """What the page has its readers type after our name, as arguments."""
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in SHELLS:
            for line in block.replace("\\\n", " ").splitlines():
                yield from _of_line(line)


def _of_line(line: str) -> Iterator[list[str]]:
    said: list[str] = []
    for word in [*shlex.split(line, comments=True), ";"]:
        if word in ENDS:
            if said[:1] == [PROGRAM]:
                yield said[1:]
            said = []
        else:
            said.append(word)
