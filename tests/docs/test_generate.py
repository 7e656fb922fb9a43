from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

from otel_reliability.config import Settings
from otel_reliability.loading import fields
from otel_reliability.service.settings import KafkaSettings, ServiceSettings

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES: Mapping[str, Callable[[], str]] = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]


@cache
def page(name: str) -> str:
    """Return a page as it is generated now, once for all tests."""
    return PAGES[name]()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_no_page_has_fallen_behind(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == page(name), "run `make docs`"


@pytest.mark.parametrize(
    "path",
    [one.path for one in fields(Settings)]
    + [f"service.{one.path}" for one in fields(ServiceSettings)]
    + [f"kafka.{one.path}" for one in fields(KafkaSettings)],
)
def test_every_setting_is_told(path: str) -> None:
    rows = [
        row for row in page("reference/settings.md").splitlines() if row.startswith(f"| `{path}` |")
    ]

    assert len(rows) == 1
    assert all(cell.strip() for cell in rows[0].strip("|").split("|"))
