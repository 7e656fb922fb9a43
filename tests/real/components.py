"""Find the installed real programs; say why a test cannot run where one is absent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.real.install import components


def folder_of(name: str) -> Path:
    """The folder of an installed component; the test that asks is skipped by name where it is absent or outdated."""
    component = components()[name]
    if not component.ready():
        pytest.skip(
            f"{name} {component.version} is not in {component.folder}: run `python tests/real/install.py {name}`"
        )
    return component.folder


def program_on_path(name: str) -> Path:
    """A program that the machine itself must have."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"`{name}` is not on this machine: install it")
    return Path(found)
