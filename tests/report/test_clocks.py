"""Clocks of services that differ."""

from __future__ import annotations

import itertools

import pytest

from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_INTERNAL,
    KIND_SERVER,
    RawSpan,
    Resource,
)
from otel_reliability.report.clocks import Clocks, ClockSkew
from otel_reliability.testing import span


def call(
    number: int, start: float, end: float, *, kind: int = KIND_CLIENT, service: str = "front"
) -> RawSpan:
    """A span of the first service, or of another one below it (numbers from 100 on)."""
    parent = number - 100 if number >= 100 else None
    resource = Resource.of({"service.name": service})
    return span(number, parent, start=start, end=end, kind=kind, resource=resource)


def answer(number: int, start: float, end: float, kind: int = KIND_SERVER) -> RawSpan:
    return call(number, start, end, kind=kind, service="back")


def skews(*spans: RawSpan) -> list[ClockSkew]:
    clocks = Clocks()
    for one in spans:
        clocks.see([one])
    return clocks.skews()


def test_the_estimate_is_what_all_calls_allow() -> None:
    """Of offsets from -63 to -55 and from -60.5 to -58.5 s, -59.5 ± 1 s."""
    spans = [
        call(1, 1000, 1010),
        answer(101, 945, 947),
        call(2, 1020, 1024),
        answer(102, 961.5, 963.5),
    ]

    for order in itertools.permutations(spans):
        assert skews(*order) == [ClockSkew("back", "front", -59.5, 1.0, 2)]


@pytest.mark.parametrize(
    ("answered", "ahead"),
    [
        (answer(101, 1001, 1009), None),  # inside: no difference
        (answer(101, 1300, 1304), 297.0),
        (answer(101, 1300, 1400), None),  # longer than its caller: in the background
        (answer(101, 1300, 1304, KIND_CONSUMER), None),  # it waited in a queue
        (call(101, 1300, 1304, kind=KIND_SERVER), None),  # the same service
    ],
)
def test_what_shows_a_difference(answered: RawSpan, ahead: float | None) -> None:
    found = [one.ahead_s for one in skews(call(1, 1000, 1010), answered)]
    assert found == ([] if ahead is None else [ahead])


def test_work_that_nobody_waits_for_shows_nothing() -> None:
    caller = call(1, 1000, 1010, kind=KIND_INTERNAL)
    assert skews(caller, answer(101, 1300, 1304, KIND_INTERNAL)) == []


def test_calls_that_exclude_one_another_have_the_median() -> None:
    spans = [
        each
        for number, offset in enumerate((60, 61, 300), start=1)
        for each in (call(number, 1000, 1002), answer(100 + number, 1000 + offset, 1002 + offset))
    ]
    assert [one.ahead_s for one in skews(*spans)] == [61.0]
