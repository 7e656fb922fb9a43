from __future__ import annotations

import functools
import json
from typing import Final

import pytest

from tests.harm.hosts import run_host

MEASURE = """
import json
from benchmarks import bench_hooks as bench

found = dict(zip(("agent", "other"), (row.value for row in bench.costs(rounds=7)), strict=False))
print(json.dumps(found))
"""


ATTEMPTS: Final = 3


@functools.cache
def measured(attempt: int) -> dict[str, float]:
    """CPU time of the SDK's start and end of a span with our processor, as a multiple of that with
    a no-op processor: by the spans, another measurement for each attempt.
    """
    return json.loads(run_host(MEASURE, measured=True).out)


@pytest.mark.parametrize(("spans", "limit"), [("agent", 1.25), ("other", 1.10)])
def test_hooks_cost_little_next_to_the_sdk(spans: str, limit: float) -> None:
    """The benchmark holds 1.15 and 1.04; here there is room for what else the machine does, which
    is seldom there in three measurements. A hook that costs more costs it in each.
    """
    ratios: list[float] = []
    while len(ratios) < ATTEMPTS and min(ratios, default=limit + 1) > limit:
        ratios.append(measured(len(ratios))[spans])

    assert min(ratios) <= limit
