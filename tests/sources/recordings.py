"""Every recording of ../shared, by name."""

from __future__ import annotations

import pytest

from tests.shared import SHARED

FILES = sorted((SHARED / "corpora").glob("*/*.jsonl.gz"))

every_recording = pytest.mark.parametrize(
    "recording",
    FILES or [pytest.param(None, marks=pytest.mark.skip(reason="../shared/corpora is not here"))],
    ids=lambda path: path.name if path else "none",
)
"""Runs a test once a file, its path as the argument `recording`."""
