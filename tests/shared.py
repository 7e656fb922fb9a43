"""Recordings and oracles: those that lie beside the project, `../shared`, and the few small ones
that `tests.made.make` writes, which everyone has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
MADE = Path(__file__).resolve().parent / "made"


def each_file(*patterns: str, without: str | None = None) -> list[Any]:
    """The files below ../shared and `made` as parameters, by name; one skipped case where there is
    none.
    """
    files = [
        file
        for folder in (SHARED, MADE)
        for pattern in patterns
        for file in sorted(folder.glob(pattern))
        if not without or without not in file.name
    ]
    absent = pytest.param(
        None, marks=pytest.mark.skip(reason=f"../shared/{patterns[0]} is not here"), id="none"
    )
    return [pytest.param(file, id=file.name.partition(".jsonl")[0]) for file in files] or [absent]


def shared(path: str) -> Path:
    """A file or folder below `made` or ../shared; the test that asks is skipped by name where
    it is absent.
    """
    made = MADE / path
    found = made if made.is_file() else SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not here")
    return found
