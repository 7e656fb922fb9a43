"""Find the installed components; skip a test with the reason where one is absent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.real.install import components


def folder_of(name: str) -> Path:
    """Return the folder of an installed component; skip the test with the reason where it is not
    installed.
    """
    component = components()[name]
    if not component.ready():
        pytest.skip(f"{name} {component.version} is not installed: {component.why_unavailable()}")
    return component.folder


def program_on_path(name: str) -> Path:
    """Return the path of a program that the machine itself must have; skip the test where it is
    absent.
    """
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"`{name}` is not on this machine: install it")
    return Path(found)
