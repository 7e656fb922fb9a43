"""Words of pages and docstrings: those of the field, and a first word that says what a thing is or
does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, name

PRIVATE = re.compile(
    r"\b(whoever|somebody|anew|foretells?|beneath|dearest|ceilings?|shelf|shelves|roster|stencils?|asleep|awake|at rest|"
    r"lay aside|of late|mends?|mended|judgements?|doors?)\b",
    re.IGNORECASE,
)
"""Words that have a plain equivalent in OpenTelemetry, Prometheus, Kafka or statistics."""
FIRST = re.compile(r"\s*(What|Whether|Who|Whose|Where|How|The same)\b")
"""First words of a docstring that neither is a noun nor a verb: write "Return whether …", "Maximum
spans per run".
"""
KNOWN_DOCSTRINGS = 0
"""Docstrings that still begin otherwise. Lower it, never raise it."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of modules, classes, functions and constants, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def test_pages_use_the_words_of_the_field() -> None:
    found = [
        f"{name(page)}:{number}: {word[0]}"
        for page in PAGES
        for number, line in _lines_of_prose(page)
        for word in PRIVATE.finditer(line)
    ]

    assert found == []


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip()[:60]}"
        for path in sorted((ROOT / "otel_reliability").rglob("*.py"))
        for line, text in docstrings(path)
        if FIRST.match(text)
    ]

    assert len(found) <= KNOWN_DOCSTRINGS, "\n".join(found)


def _lines_of_prose(page: Path) -> Iterator[tuple[int, str]]:
    fence = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence ^= line.lstrip().startswith("```")
        if not fence:
            yield number, re.sub(r"`[^`]*`", "", line)
