from __future__ import annotations

import json

import pytest

from tests.harm.hosts import run_host

MEASURE = """
import json
from benchmarks import bench_hooks as bench

found = dict(zip(("agent", "other"), (row.value for row in bench.costs(rounds=7)), strict=False))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def ratios() -> dict[str, float]:
    """CPU time of the SDK's start and end of a span with our processor, as a multiple of that with
    a no-op processor.
    """
    return json.loads(run_host(MEASURE, measured=True).out)


@pytest.mark.parametrize(("spans", "limit"), [("agent", 1.25), ("other", 1.10)])
def test_hooks_cost_little_next_to_the_sdk(
    ratios: dict[str, float], spans: str, limit: float
) -> None:
    """The benchmark holds 1.15 and 1.04; here there is room for what else the machine does."""
    assert ratios[spans] <= limit
