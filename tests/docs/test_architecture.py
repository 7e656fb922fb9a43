"""The page on architecture names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import pages

PACKAGE = pages.ROOT / "otel_reliability"
NAMED = set(
    re.findall(r"`([\w/.]+)`", (pages.ROOT / "docs/explanation/architecture.md").read_text())
)


def modules(folder: Path) -> set[str]:
    """The modules of a folder, and the folders in it (with a slash at the end)."""
    files = {file.name for file in folder.glob("*.py") if file.name != "__init__.py"}
    return files | {f"{file.parent.name}/" for file in folder.glob("*/__init__.py")}


@pytest.mark.parametrize("name", sorted(modules(PACKAGE)))
def test_every_folder_and_module_of_the_package_is_named(name: str) -> None:
    assert name in NAMED


@pytest.mark.parametrize("name", sorted(modules(PACKAGE / "assembly")))
def test_every_module_of_assembly_is_in_a_room(name: str) -> None:
    assert name.removesuffix(".py") in NAMED
