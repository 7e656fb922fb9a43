from __future__ import annotations

import runpy
from typing import Any

from tests.docs.pages import ROOT

WRITTEN = runpy.run_path(str(ROOT / "docs" / "performance_page.py"))["written"]
MACHINE = {"cores": 2, "cpu": "CPU", "system": "Linux x86_64"}


def row(name: str, value: float, at_most: float | None = None, unit: str = "×") -> dict[str, Any]:
    spread = [value, value]
    return {
        "name": name,
        "value": value,
        "at_most": at_most,
        "unit": unit,
        "spread": spread,
        "against": "other",
    }


def page(*rows: dict[str, Any]) -> str:
    results = {
        "date": "2026-11-23",
        "machine": MACHINE,
        "versions": {"python": "3.11.7"},
        "rows": rows,
    }
    found: str = WRITTEN(results, None)
    return found


def test_rows_over_their_limit_come_first() -> None:
    before = page(row("a", 4.0, 3.2), row("b", 1.0, 2.0), row("c", 9.0)).partition("| what |")[0]

    assert "1 of 2 rows over the limit:" in before
    assert "- a: 4 ×, limit 3.2 (+25%)" in before


def test_a_deployment_is_sized_by_what_was_measured() -> None:
    """Spans per second and core follow from microseconds; memory is given for ten thousand."""
    found = page(
        row("service, Python, per span", 8.0, unit="µs"),
        row("memory per open run of 20 spans", 6.0, 8.0, "KiB"),
    )

    assert "8 µs per span: 120,000 spans per second and core" in found
    assert "needs 6 KiB; 10,000 need 59 MiB" in found
    assert "An agent" not in found


def test_nothing_measured() -> None:
    found: str = WRITTEN(None, None)

    assert "Nothing is measured yet" in found
    assert "Sizing" not in found
