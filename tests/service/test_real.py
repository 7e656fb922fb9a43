"""The service between real Collectors; all ways to Prometheus are
compared in `test_end_to_end.py`.
"""

from __future__ import annotations

import time

import pytest

from otel_reliability.service.answers import RETRY
from tests.otlp import traces_protobuf
from tests.real.collector.handle import Collectors
from tests.real.prometheus.handle import Promtool
from tests.real.waiting import until
from tests.real.web import ask
from tests.service.running import serving
from tests.service.test_end_to_end_outages import to_service
from tests.telemetry.numbers import spans_of

pytestmark = pytest.mark.real


@pytest.mark.parametrize("protocol", ["otlp_grpc", "otlp_http"])
def test_the_collector_comes_again_when_it_is_told(collector: Collectors, protocol: str) -> None:
    """Not sooner: its own pause is 0.1 to 0.45 s, ours is 1 s, told by RetryInfo within the status
    or by Retry-After.
    """
    with serving() as running:
        before = collector(to_service(running.target, running.url("http"), protocol))
        budget = running.service.intake.budget
        place = budget.reserve(budget.capacity)
        body = traces_protobuf(spans_of("support", 1, 1))
        ask(
            f"{before.http}/v1/traces",
            body=body,
            headers={"Content-Type": "application/x-protobuf"},
        )
        moments = [
            until(lambda n=n: budget.refused >= n and time.monotonic(), f"refusal {n}", pause=0.005)
            for n in (1, 2)
        ]
        place.release()
        until(lambda: running.service.engine.accounts["received", ""], "the spans to arrive")

        assert moments[1] - moments[0] > 0.8 * RETRY


def test_promtool_finds_nothing_wrong(promtool: Promtool) -> None:
    """Names, types and text are as Prometheus wants them, but that it takes the bits of an entropy
    for a size.
    """
    with serving() as running:
        running.send(spans_of("support", 12, 1))
        done = promtool("check", "metrics", stdin=running.metrics())
    complaints = [
        line
        for line in done.stderr.splitlines()
        if not line.startswith("agent_reliability_path_entropy_bits use base unit")
    ]

    assert done.stdout == ""
    assert complaints == []
