"""The recordings and oracles that lie beside the project, not in it: `../shared`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def each_file(*patterns: str, without: str | None = None) -> list[Any]:
    """The files below ../shared as parameters, by name; one skipped case where there is none."""
    files = [
        file
        for pattern in patterns
        for file in sorted(SHARED.glob(pattern))
        if not without or without not in file.name
    ]
    absent = pytest.param(
        None, marks=pytest.mark.skip(reason=f"../shared/{patterns[0]} is not here"), id="none"
    )
    return [pytest.param(file, id=file.name.partition(".jsonl")[0]) for file in files] or [absent]


def shared(path: str) -> Path:
    """A file or folder below ../shared; the test that asks is skipped by name where
    it is absent.
    """
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"../shared/{path} is not here")
    return found
