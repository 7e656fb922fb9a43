"""The clock stands still for the thread that holds it, and for no other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from otel_reliability.service.clock import Clock, Moment
from otel_reliability.testing import EPOCH_NS, FakeClock


def test_only_the_holder_sees_it_stand_still() -> None:
    """Probes on other threads would else take a writer at work for one that is stuck."""
    fake = FakeClock(5.0)
    clock = Clock(fake, fake.wall)
    with ThreadPoolExecutor(1) as other, clock.at(Moment(1.0, 2)):
        assert clock.moment() == Moment(1.0, 2)
        assert other.submit(clock).result() == 5.0
    assert clock.moment() == Moment(5.0, EPOCH_NS + 5 * 10**9)
