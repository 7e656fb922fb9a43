"""The page of costs tells what was measured, and what is over its limit first."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.docs.pages import ROOT

TOLD = runpy.run_path(str(ROOT / "docs" / "performance_page.py"))["told"]
MACHINE = {"cores": 2, "cpu": "CPU", "system": "Linux x86_64"}
OVER_TIME = {
    "date": "2026-11-21",
    "machine": MACHINE,
    "settings": ["assembly.linger=1s"],
    "spans": 1_024_000,
    "minutes": 2.5,
    "cost": {"ratio": 1.02, "spread": [0.98, 1.05], "at_most": 1.1},
    "memory": {"growth": 0.012, "at_most": 0.05, "looks": [[1.0, 25_600, 90_000_000], [150.0, 1_024_000, 120_000_000]]},
    "garbage": {
        "collections": [200, 10, 1],
        "work_s": 3.2,
        "long": 3,
        "worked": 1,
        "longest": {"generation": 0, "pause_s": 0.12, "work_s": 0.03, "blocks": 5, "collected": 0},
        "most_work": {"generation": 2, "pause_s": 0.1, "work_s": 0.07, "blocks": 654321, "collected": 0},
    },
}


def row(name: str, value: float, at_most: float | None = None, unit: str = "×") -> dict[str, Any]:
    """A row of results."""
    return {
        "name": name,
        "value": value,
        "at_most": at_most,
        "unit": unit,
        "spread": [value, value],
        "against": "other",
    }


def told(*rows: dict[str, Any], over_time: dict[str, Any] | None = None) -> str:
    """The page about these rows."""
    page: str = TOLD({"machine": MACHINE, "versions": {"python": "3.11.7"}, "rows": rows}, over_time)
    return page


@pytest.mark.parametrize(
    ("value", "expected"), [(4.0, "- a: 4 ×, at most 3.2, that is 25% too much"), (8.0, "that is 2.5 times the limit")]
)
def test_what_is_over_its_limit_is_named(value: float, expected: str) -> None:
    """With by how much, before the table."""
    page = told(row("a", value, 3.2), row("b", 1.0, 2.0), row("c", 9.0))

    assert "1 of 2 rows is over the limit:" in page
    assert expected in page.partition("| what |")[0]


def test_all_within_their_limits_is_said() -> None:
    """And what has no limit is neither over nor within."""
    assert "All 1 rows are within" in told(row("b", 1.0, 2.0), row("c", 9.0))


def test_a_deployment_is_sized_by_what_was_measured() -> None:
    """Spans a second and core are what one span's microseconds make; bytes are told for ten thousand."""
    page = told(row("the service, a span", 8.0, unit="µs"), row("memory an open run of 20 spans", 6.0, 8.0, "KiB"))

    assert "8 µs a span from end to end, without a journal: 120 000 spans a second and core" in page
    assert "takes 6 KiB, 10 000 at a time 59 MiB" in page
    assert "An agent" not in page


def test_age_is_told() -> None:
    """What a span costs late, how memory went, and which pauses there were and why."""
    page = told(over_time=OVER_TIME)

    assert "in 2.5 minutes, with `assembly.linger=1s` (2026-11-21, " in page
    assert "the service as it was that day" in page
    assert "1.02 times what it costs a service that has seen 100 000" in page
    assert "90 MB after 25 600 spans" in page
    assert "3 kept all threads waiting for more than 50 ms, the longest for 120 ms. In 2 of these" in page
    assert "up to 70 ms, with 654 321 blocks of memory in use" in page


def test_the_young_service_is_described() -> None:
    """It is compared with the old one when it does the same."""
    page = told(over_time={**OVER_TIME, "young": {"spans": 614_400, "minutes": 2.5}})

    assert (
        "times what it costs a service that is 2.5 minutes old and has seen 614 000: one that closes runs, settles"
        in page
    )
    assert "ids are forgotten" not in page
    usual = {**OVER_TIME, "young": {"spans": 614_400, "minutes": 2.5}, "settings": ["sessions.idle=60s"]}
    assert "ids are forgotten after a quarter of an hour" in told(over_time=usual)


def test_nothing_measured_is_said() -> None:
    """A page without numbers has none."""
    page = TOLD(None, None)

    assert "Nothing is written down yet" in page
    assert "How to size" not in page
