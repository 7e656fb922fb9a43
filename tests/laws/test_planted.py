from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from otel_reliability.assembly.adoption import Decision
from otel_reliability.assembly.bundle import Traces
from otel_reliability.assembly.bundles import Bundles
from otel_reliability.assembly.chains import Chains
from otel_reliability.assembly.gathering import Gathering
from otel_reliability.assembly.unit import Trace, Unit, Verdict

from otel_reliability.assembly import gathering, tree
from otel_reliability.assembly.assembler import Assembler
from otel_reliability.model.run import Run
from otel_reliability.model.span import AgentSpan, SpanId, TraceId
from otel_reliability.windows.fleet import Fleet
from tests.laws import laws

Law = Callable[[st.DataObject], None]
Plant = pytest.MonkeyPatch


def does_nothing(*_: object, **__: object) -> None:
    """A step that is left out."""


def gathered(_: Bundles, spans: Iterable[AgentSpan], now: float, gather: Callable[[AgentSpan, float], None]) -> None:
    """No span lies in a bundle."""
    for span in spans:
        gather(span, now)


def assert_caught(law: Law) -> None:
    """The law fails in one of a few hundred cases."""

    @settings(
        max_examples=600,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
    @given(st.data())
    def attempt(data: st.DataObject) -> None:
        law(data)

    with pytest.raises(AssertionError):
        attempt()


def test_spans_left_in_the_order_of_their_arrival(monkeypatch: Plant) -> None:
    """Building runs from spans as they came is caught."""
    monkeypatch.setattr(tree, "span_order", len)

    assert_caught(laws.order_and_batches)


def test_children_that_never_find_their_parent(monkeypatch: Plant) -> None:
    """Forgetting those that wait for a span when it comes is caught."""

    def arrived(self: Gathering, trace: Trace, span_id: SpanId, now: float) -> None:
        del trace.waiting[span_id]

    monkeypatch.setattr(Gathering, "_arrived", arrived)

    assert_caught(laws.order_and_batches)
    assert_caught(laws.files)


def test_a_closed_run_that_does_not_reopen(monkeypatch: Plant) -> None:
    """Taking a late span in without building its run anew is caught."""

    def touch(self: Gathering, unit: Unit, now: float) -> None:
        unit.last_seen = max(unit.last_seen, now)

    monkeypatch.setattr(Gathering, "touch", touch)

    assert_caught(laws.order_and_batches)


def test_the_version_that_came_first(monkeypatch: Plant) -> None:
    """Keeping whichever version of a span came first is caught."""
    monkeypatch.setattr(gathering, "_content", len)

    assert_caught(laws.order_and_batches)


def test_a_window_that_keeps_what_was_revised(monkeypatch: Plant) -> None:
    """Not evicting the former version of a run is caught by the readings."""
    monkeypatch.setattr(Fleet, "_withdraw", does_nothing)

    assert_caught(laws.order_and_batches)


def test_a_judgement_that_stays_with_the_first(monkeypatch: Plant) -> None:
    """Giving judgements to the runs that are there when they come, and never again, is caught."""
    monkeypatch.setattr(Assembler, "_look_again", does_nothing)

    assert_caught(laws.order_and_batches)


def test_an_adopter_chosen_once(monkeypatch: Plant) -> None:
    """Deciding about work without a parent when it closes, and not again when other runs do, is caught."""
    decide = Decision.about

    def once(self: Decision, unit: Unit) -> Verdict:
        return unit.verdict or decide(self, unit)

    monkeypatch.setattr(Decision, "about", once)

    assert_caught(laws.order_and_batches)


def test_a_duplicate_taken_for_a_span(monkeypatch: Plant) -> None:
    """Forgetting the ids of settled runs is caught."""
    monkeypatch.setattr(Gathering, "bury", does_nothing)

    assert_caught(laws.duplication)
    assert_caught(laws.lateness)


def test_a_trace_taken_for_another(monkeypatch: Plant) -> None:
    """Finding spans by their span id alone is caught."""

    class OneTrace(Traces):
        def find(self, trace_id: TraceId) -> Trace | None:
            return next(iter(self.values()), None)

    begin = Gathering.__init__

    def mixed(self: Gathering, *rest: Any) -> None:
        begin(self, *rest)
        self.traces = OneTrace()
        self.chains = Chains(self.traces)

    monkeypatch.setattr(Gathering, "__init__", mixed)
    monkeypatch.setattr(Bundles, "take", gathered)
    monkeypatch.setattr(Assembler, "_settle", does_nothing)
    monkeypatch.setattr(Assembler, "_forget", does_nothing)

    assert_caught(laws.apart)


def test_a_child_of_a_settled_run_that_begins_another(monkeypatch: Plant) -> None:
    """Not looking whether what stands above has settled is caught."""
    monkeypatch.setattr(Gathering, "_missed", does_nothing)

    assert_caught(laws.lateness)


def test_a_span_that_is_not_counted(monkeypatch: Plant) -> None:
    """Forgetting to account for a span is caught, here for late ones."""

    def late(self: Gathering, trace: Trace, span_id: bytes) -> None:
        self.bury(trace, span_id)

    monkeypatch.setattr(Gathering, "_late", late)

    assert_caught(laws.accounting)


def test_a_span_that_is_counted_at_every_closing(monkeypatch: Plant) -> None:
    """Accounting for a run's spans again when it is closed again is caught."""
    count = Assembler._count

    def anew(self: Assembler, unit: Unit, built: Any) -> None:
        unit.counted = {}
        count(self, unit, built)

    monkeypatch.setattr(Assembler, "_count", anew)

    assert_caught(laws.accounting)


def test_a_ceiling_that_is_not_held(monkeypatch: Plant) -> None:
    """Not holding the ceilings of open runs, or those of remembered ids, is caught."""
    with monkeypatch.context() as one:
        one.setattr(Assembler, "_evict", does_nothing)
        assert_caught(laws.ceilings)
    with monkeypatch.context() as one:
        one.setattr(Gathering, "forget_gone", does_nothing)
        assert_caught(laws.ceilings)


def test_a_run_that_settles_twice(monkeypatch: Plant) -> None:
    """Counters would record it twice, which is caught."""
    settle = Assembler._settle_unit

    def twice(self: Assembler, closed_at: float, unit: Unit) -> None:
        runs: list[Run] = list(unit.emitted.values())
        settle(self, closed_at, unit)
        if runs and not unit.emitted:
            self._events.append(self._events[-1])

    monkeypatch.setattr(Assembler, "_settle_unit", twice)

    assert_caught(laws.order_and_batches)
