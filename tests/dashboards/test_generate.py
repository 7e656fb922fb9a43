"""The files that are shipped are what the code makes, and this project uses the same."""

from __future__ import annotations

import pytest

from dashboards.generate import MADE, places
from otel_reliability.dashboards import FILES
from tests.dashboards.asking import ROOT


@pytest.mark.parametrize("name", sorted(MADE))
def test_no_file_has_fallen_behind(name: str) -> None:
    """Each file is what `make docs` would write now, in the package and where this project uses it."""
    made = MADE[name]()

    for place in places(name):
        assert place.read_text(encoding="utf-8") == made, f"run `make docs`: {place.relative_to(ROOT)}"


def test_all_that_is_made_is_shipped() -> None:
    """The package knows a place for every file, and has no other."""
    assert MADE.keys() == FILES.keys()
