from __future__ import annotations

import json

import pytest

from tests.harm.hosts import run_host


@pytest.fixture(scope="module")
def shares() -> dict[str, float]:
    """What `on_end` costs, as a share of what a host does anyway."""
    return json.loads(run_host("from tests.harm.overhead import main; main()", measured=True).out)


@pytest.mark.parametrize("span", ["an agent's span", "an ordinary span"])
def test_on_end_costs_little_beside_the_sdk(span: str, shares: dict[str, float]) -> None:
    """At most 15 % of what the SDK's own start and end of a span of ten attributes cost."""
    assert 0 < shares[span] <= 0.15


def test_on_end_costs_little_beside_an_exporting_pipeline(shares: dict[str, float]) -> None:
    """At most 6 % of a `BatchSpanProcessor` with OTLP encoding."""
    assert 0 < shares["an exporting pipeline"] <= 0.06
