from __future__ import annotations

import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.docs import pages

FOLDER = pages.ROOT / "docs" / "images"
SCRIPT: Mapping[str, Any] = runpy.run_path(str(FOLDER.parent / "screenshots.py"))
LARGEST = 300_000


@pytest.mark.parametrize("name", [*SCRIPT["SHOTS"], SCRIPT["TERMINAL"]])
def test_every_picture_was_taken(name: str) -> None:
    assert 10_000 < (FOLDER / name).stat().st_size < LARGEST


def test_no_picture_is_left_of_what_is_not_taken_any_more() -> None:
    assert {path.name for path in FOLDER.glob("page-*")} == {*SCRIPT["SHOTS"], SCRIPT["TERMINAL"]}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.svg")), ids=lambda path: path.name)
def test_drawings_fetch_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert not re.search(r"url\(['\"]?[a-z]+:|(?:href|src)=['\"]?[a-z]+:|@import", text)
