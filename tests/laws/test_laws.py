from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from otel_reliability.model.run import RunChange
from tests.laws import laws
from tests.laws.arrival import after, flushed, read, schedules
from tests.laws.telemetry import cases, features

ENOUGH = 0.05
"""Every thing that a case must be able to hold is in at least this share of cases."""


def test_the_generated_telemetry_holds_everything() -> None:
    """Nesting, hand-offs, failures, retries and all the rest are each in one of twenty generated cases or more."""
    found: Counter[str] = Counter()
    number = 0

    @settings(max_examples=250, phases=[Phase.generate], database=None, suppress_health_check=(HealthCheck.too_slow,))
    @given(st.data())
    def look(data: st.DataObject) -> None:
        nonlocal number
        case = data.draw(cases())
        here = features(case)
        arrivals = data.draw(schedules(read(case.everything)))
        changes = after(arrivals, end=flushed).changes
        here["late span"] = changes.count(RunChange.REVISED) + changes.count(RunChange.WITHDRAWN)
        found.update({name for name, many in here.items() if many})
        number += 1

    look()

    assert number >= 200
    wanted = {
        "failure", "hand-off", "hop", "judgement", "late span", "local orphan", "remote orphan", "more than a window", "nesting",
        "another version", "compression", "overlap", "retry", "several agents", "unknown arguments",
    }  # fmt: skip
    assert {name: found[name] / number for name in wanted if found[name] < ENOUGH * number} == {}


@given(st.data())
def test_order_and_batches_change_nothing(data: st.DataObject) -> None:
    laws.order_and_batches(data)


@given(st.data())
def test_nor_do_they_where_parents_go_in_circles(data: st.DataObject) -> None:
    laws.order_and_batches(data, hostile=True)


@given(st.data())
def test_traces_that_are_known_to_be_complete_need_not_wait(data: st.DataObject) -> None:
    laws.completeness(data)


@given(st.data())
def test_nor_need_they_where_parents_go_in_circles(data: st.DataObject) -> None:
    laws.completeness(data, hostile=True)


@given(st.data())
def test_spans_that_come_again_change_nothing(data: st.DataObject) -> None:
    laws.duplication(data)


@given(st.data())
def test_traces_never_mix(data: st.DataObject) -> None:
    laws.apart(data)


@given(st.data())
def test_a_file_may_be_in_any_order(data: st.DataObject) -> None:
    laws.files(data)


@given(st.data())
def test_late_spans_open_no_run(data: st.DataObject) -> None:
    laws.lateness(data)


@given(st.data())
def test_every_span_is_accounted_for(data: st.DataObject) -> None:
    laws.accounting(data)


@given(st.data())
def test_memory_stays_under_its_limits(data: st.DataObject) -> None:
    laws.limits(data)
