from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.assembly import accounts, final_ids, intake, span_tree
from otel_reliability.assembly.buffers import Buffers, TraceBuffer
from otel_reliability.assembly.emission import Emitter
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.assembly.limits import Limits
from otel_reliability.assembly.memory import Memory
from otel_reliability.assembly.rebuild import Rebuilt
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import AgentSpan
from otel_reliability.windows.agents import AgentState
from tests.laws import laws

Law = Callable[[st.DataObject], None]
Plant = pytest.MonkeyPatch


def does_nothing(*_: object, **__: object) -> None:
    """A step that is left out."""


def finds_nothing(*_: object, **__: object) -> tuple[()]:
    """A question that is always answered with nothing."""
    return ()


def same_for_all(_: object) -> int:
    """A rank that decides nothing."""
    return 0


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


@pytest.mark.parametrize(
    ("place", "step", "left_out", "broken"),
    [
        pytest.param(
            span_tree,
            "ORDER",
            same_for_all,
            [laws.order_and_batches],
            id="spans in the order of arrival",
        ),
        pytest.param(
            span_tree,
            "_rank",
            same_for_all,
            [laws.order_and_batches],
            id="the version that came first",
        ),
        pytest.param(
            AgentState, "withdraw", does_nothing, [laws.order_and_batches], id="a revised run stays"
        ),
        pytest.param(
            Memory,
            "put",
            does_nothing,
            [laws.duplication, laws.lateness],
            id="final ids forgotten",
        ),
        pytest.param(
            Emitter, "uncount", does_nothing, [laws.accounting], id="counted at every closing"
        ),
        pytest.param(Limits, "to_close", finds_nothing, [laws.limits], id="no limit of open runs"),
        pytest.param(
            Limits,
            "_forget_oldest",
            does_nothing,
            [laws.limits],
            id="no limit of remembered ids",
        ),
    ],
)
def test_a_step_that_is_left_out(
    place: Any, step: str, left_out: Any, broken: list[Law], monkeypatch: Plant
) -> None:
    monkeypatch.setattr(place, step, left_out)

    for law in broken:
        assert_caught(law)


def test_children_that_never_find_their_parent(monkeypatch: Plant) -> None:
    begin = TraceBuffer.__init__

    def forgetful(self: TraceBuffer, *rest: Any) -> None:
        begin(self, *rest)
        self.spans = Ordered()

    class Ordered(list[AgentSpan]):
        def append(self, span: AgentSpan, /) -> None:
            if span.parent_id is None or any(one.span_id == span.parent_id for one in self):
                super().append(span)
            else:
                super().append(replace(span, parent_id=None))

    monkeypatch.setattr(TraceBuffer, "__init__", forgetful)

    assert_caught(laws.order_and_batches)
    assert_caught(laws.files)


def test_a_closed_run_that_does_not_reopen(monkeypatch: Plant) -> None:
    touch = Buffers.touch

    def closed(self: Buffers, buffer: TraceBuffer, now: float) -> None:
        if buffer.closed_at is None:
            touch(self, buffer, now)

    monkeypatch.setattr(Buffers, "touch", closed)

    assert_caught(laws.order_and_batches)


def test_an_evaluation_that_is_given_once(monkeypatch: Plant) -> None:
    assembled = Assembler._rebuilt_as_is

    def once(self: Assembler, buffer: TraceBuffer) -> Any:
        built = assembled(self, buffer)
        buffer.evaluations = ()
        return built

    monkeypatch.setattr(Assembler, "_rebuilt_as_is", once)

    assert_caught(laws.order_and_batches)


def test_a_run_that_is_never_revised(monkeypatch: Plant) -> None:
    emit = Emitter.emit

    def once(
        self: Emitter, buffer: TraceBuffer, built: Rebuilt, numbers: Iterable[int], *rest: Any
    ) -> None:
        emit(
            self,
            buffer,
            built,
            [n for n in numbers if built.runs[n].run_id not in buffer.emitted],
            *rest,
        )

    monkeypatch.setattr(Emitter, "emit", once)

    assert_caught(laws.order_and_batches)


def test_a_trace_taken_for_another(monkeypatch: Plant) -> None:
    add = Assembler.add_all

    def mixed(self: Assembler, spans: list[AgentSpan], now: float, *, hurried: bool) -> None:
        add(self, [replace(span, trace_id=bytes(16)) for span in spans], now, hurried=hurried)

    monkeypatch.setattr(Assembler, "add_all", mixed)

    assert_caught(laws.apart)


def test_a_child_of_a_final_run_that_begins_another(monkeypatch: Plant) -> None:
    account_of = final_ids.account_of

    def duplicates_only(closed: Any, span: AgentSpan) -> Any:
        account = account_of(closed, span)
        return None if account == accounts.LATE else account

    for module in (intake, final_ids):
        monkeypatch.setattr(module, "account_of", duplicates_only)

    assert_caught(laws.lateness)


def test_a_span_that_is_not_counted(monkeypatch: Plant) -> None:
    close = Assembler._close

    def uncounted(
        self: Assembler, buffer: TraceBuffer, built: Rebuilt, reason: CloseReason, now: float
    ) -> None:
        buffer.spans = [*{(span.trace_id, span.span_id): span for span in buffer.spans}.values()]
        close(self, buffer, built, reason, now)

    monkeypatch.setattr(Assembler, "_close", uncounted)

    assert_caught(laws.accounting)


def test_a_run_that_is_final_twice(monkeypatch: Plant) -> None:
    finalize = Emitter.emit_final

    def twice(self: Emitter, run: Run) -> None:
        finalize(self, run)
        finalize(self, run)

    monkeypatch.setattr(Emitter, "emit_final", twice)

    assert_caught(laws.order_and_batches)
