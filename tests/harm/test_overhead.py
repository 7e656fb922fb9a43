from __future__ import annotations

import json

import pytest

from tests.harm.hosts import run_host


@pytest.fixture(scope="module")
def shares() -> dict[str, float]:
    """What `on_start` and `on_end` cost, as a share of what a host does anyway."""
    return json.loads(run_host("from tests.harm.overhead import main; main()", measured=True).out)


def test_the_hooks_cost_little_beside_the_sdk(shares: dict[str, float]) -> None:
    """At most 15 % of what the SDK's own start and end of a span of ten attributes cost."""
    assert 0 < shares["an agent's span"] <= 0.15


def test_an_ordinary_span_costs_hardly_anything(shares: dict[str, float]) -> None:
    """It is told at a glance, and only its id is kept: at most 8 %, on machines that do other work too."""
    assert 0 < shares["an ordinary span"] <= 0.08


def test_the_hooks_cost_little_beside_an_exporting_pipeline(shares: dict[str, float]) -> None:
    """At most 6 % of a `BatchSpanProcessor` with OTLP encoding."""
    assert 0 < shares["an exporting pipeline"] <= 0.06
