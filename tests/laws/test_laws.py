from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from otel_reliability.model.run import RunChange
from tests.laws import laws
from tests.laws.arrival import after, flushed, read, schedules
from tests.laws.telemetry import cases, features

ENOUGH = 0.05
"""Every thing that a case must be able to hold is in at least this share of cases."""


def test_the_generated_telemetry_holds_everything() -> None:
    """Nesting, hand-offs, failures, retries and all the rest are each in one of twenty generated
    cases or more.
    """
    found: Counter[str] = Counter()
    number = 0

    @settings(
        max_examples=120,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=(HealthCheck.too_slow,),
    )
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

    assert number >= 100
    wanted = {
        "failure",
        "hand-off",
        "hop",
        "judgement",
        "late span",
        "local orphan",
        "remote orphan",
        "more than a window",
        "nesting",
        "another version",
        "compression",
        "overlap",
        "request",
        "request in an event",
        "retry",
        "several agents",
        "unknown arguments",
    }
    assert {name: found[name] / number for name in wanted if found[name] < ENOUGH * number} == {}


LAWS = {
    "order and batches": laws.order_and_batches,
    "order and batches, parents in circles": partial(laws.order_and_batches, hostile=True),
    "complete traces": laws.completeness,
    "complete traces, parents in circles": partial(laws.completeness, hostile=True),
    "duplicates": laws.duplication,
    "traces never mix": laws.apart,
    "files in any order": laws.files,
    "late spans": laws.lateness,
    "accounting": laws.accounting,
    "limits": laws.limits,
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@given(data=st.data())
def test_law_holds(law: Callable[[st.DataObject], None], data: st.DataObject) -> None:
    law(data)
