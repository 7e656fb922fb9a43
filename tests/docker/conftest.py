"""The image, made once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.image import Image


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """The image, in a folder that any user may read; only root may write to it, but
    for the state.
    """
    root = Path(tempfile.mkdtemp(prefix="image-"))
    root.chmod(0o755)
    try:
        yield Image(root)
    finally:
        shutil.rmtree(root)
