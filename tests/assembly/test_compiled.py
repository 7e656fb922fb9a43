"""What the compiled module makes of spans is what Python makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.assembly import compiled, rows
from otel_reliability.assembly.build import Builder
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.compiled import CALLER, NATIVE
from otel_reliability.assembly.rows import Models, Tools
from otel_reliability.config import Settings
from otel_reliability.model.run import CloseReason
from otel_reliability.model.span import AgentSpan
from otel_reliability.testing import agent, model, tool
from tests.assembly.test_bundles import SETTINGS, plain_runs

needs_native = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

RUN = (agent(1), model(2, 1, start=0.1, end=0.2), tool(3, 1, "search", start=0.3, end=0.4))


@needs_native
@given(st.data())
def test_the_same_spans_are_rows(data: st.DataObject) -> None:
    """From any place on, and with any room: as many are taken, and the rows are the same."""
    spans = data.draw(plain_runs())
    spans = data.draw(st.permutations(spans))
    room = data.draw(st.sampled_from((0, 1, 3, 100)))

    assert taken(compiled.take_rows, spans, room) == taken(rows.take_rows, spans, room)


def taken(take: Callable[..., int], spans: Sequence[AgentSpan], room: int) -> object:
    """How many spans are taken from each place on, and what the rows are then."""
    models, tools = Models(), Tools()
    numbers = [take(list(spans), at, models, tools, room) for at in range(len(spans))]
    alike = [(one.shared, one.remote, one.span_kind, one.parent) for one in (models, tools)]
    return numbers, list(models), list(tools), alike


@needs_native
@given(plain_runs())
def test_the_same_runs_are_built(spans: list[AgentSpan]) -> None:
    """Whatever is plain, and whatever is not."""
    bundle = Bundle(spans[0].trace_id, 0.0)
    for span in {span.span_id: span for span in spans}.values():
        bundle.keep(span)

    assert run_of(bundle, SETTINGS, CALLER) == run_of(bundle, SETTINGS, None)


def run_of(bundle: Bundle, settings: Settings, caller: object) -> object:
    """The run of a bundle, its calls made by this."""
    simple = Builder(settings).simple
    simple._caller = caller
    return simple.build(bundle, CloseReason.ROOT)


@pytest.mark.parametrize("order", list(permutations(RUN)))
def test_ids_are_packed_and_told_apart(order: tuple[AgentSpan, ...]) -> None:
    """By the compiled module as in Python: model calls first, then tools, then the rest."""
    bundle = Bundle(order[0].trace_id, 0.0)
    for span in order:
        bundle.keep(span)
    held = bundle.models, bundle.tools, bundle.others

    assert compiled.packed(*held) == rows.packed(*held) == RUN[1].span_id + RUN[2].span_id + RUN[0].span_id
    assert compiled.are_distinct(*held)
    assert rows.are_distinct(*held)
    bundle.keep(order[0])
    assert not compiled.are_distinct(*held)
    assert not rows.are_distinct(*held)


@given(plain_runs())
def test_parents_are_compared(spans: list[AgentSpan]) -> None:
    """By the compiled module as in Python."""
    bundle = Bundle(spans[0].trace_id, 0.0)
    for span in spans:
        bundle.keep(span)

    for known in spans[:3]:
        asked = bundle.models, bundle.tools, known.span_id
        assert compiled.hang_on(*asked) == rows.hang_on(*asked)


def test_ids_of_another_length_are_not_packed() -> None:
    """They could not be told apart."""
    odd = [RUN[0]._replace(span_id=b"1234567"), RUN[0]._replace(span_id=b"123456789")]
    held = Models(), Tools(), odd

    assert compiled.packed(*held) is None
    assert rows.packed(*held) is None
    assert rows.are_distinct(*held)
