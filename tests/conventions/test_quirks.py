"""Every quirk has a test that bears its number."""

from __future__ import annotations

import re
from pathlib import Path

from otel_reliability.conventions import TABLE

HERE = Path(__file__).parent
NUMBERED = re.compile(r"^def test_q(\d\d)_", re.MULTILINE)
QUIRKS = 46


def test_every_quirk_is_tested() -> None:
    tested = {
        int(number)
        for file in HERE.glob("test_*.py")
        for number in NUMBERED.findall(file.read_text(encoding="utf-8"))
    }

    assert tested == set(range(1, QUIRKS + 1))


def test_every_convention_has_a_name_and_says_what_it_reads() -> None:
    names = [convention.name for convention in TABLE]
    scoped = [bool(convention.scopes) for convention in TABLE]

    assert len(set(names)) == len(names)
    assert scoped == sorted(scoped, reverse=True)
