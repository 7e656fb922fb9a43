"""What the compiled module makes of spans is what Python makes of them."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.assembly import compiled, resting, rows
from otel_reliability.assembly.build import Builder
from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.compiled import CALLER, NATIVE
from otel_reliability.assembly.rows import Models, Tools
from otel_reliability.config import Settings
from otel_reliability.model import packed
from otel_reliability.model.columns import Columns
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    Resource,
    Session,
    Tokens,
    ToolFacts,
)
from otel_reliability.model.tool_calls import ToolCalls
from otel_reliability.testing import agent, agent_span, model, span_id, tool
from tests.assembly.test_bundles import SETTINGS, plain_runs

needs_native = pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")

BY_STATUS = replace(SETTINGS, outcome=replace(SETTINGS.outcome, fallback="status"))
AS_STARTED = replace(SETTINGS, assembly=replace(SETTINGS.assembly, parallel="as_started"))
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

    plain = run_of(bundle, SETTINGS, None, compiled=False)

    assert run_of(bundle, SETTINGS, CALLER, compiled=False) == plain
    assert run_of(bundle, SETTINGS, CALLER, compiled=True) == plain


@st.composite
def usual_runs(draw: st.DrawFn) -> list[AgentSpan]:
    """An agent and its calls, one after the other, alike in nearly everything; now and then one field is not."""
    sessions = draw(
        st.sampled_from(((None,), (Session(1, "s"),), (None, Session(1, "s")), (Session(1, "s"), Session(0, "t"))))
    )
    facts = InvocationFacts("support", limit_reached=draw(st.booleans()))
    spans = [agent(1, end=draw(st.sampled_from((3.0, 99.0))))._replace(facts=facts)]
    parts = st.tuples(st.booleans(), st.sampled_from(("search", "pay")), st.booleans(), st.integers(0, 2))
    hashes = st.sampled_from(draw(st.sampled_from(((None,), (b"a", b"b", b"c"), (None, b"a")))))
    pace = draw(st.sampled_from((1.0, 1.0, 0.25, 0.0)))
    for number, (is_tool, name, failed, tokens) in enumerate(draw(st.lists(parts, max_size=7)), 2):
        start = 1.5 + (number - 2) * pace
        end = start + draw(st.sampled_from((0.5, 0.75, 1.0)))
        if is_tool:
            call = Call(
                name, draw(st.sampled_from((None, f"call{number}"))), draw(hashes), failed, draw(hashes), draw(hashes)
            )
            spans.append(agent_span(Kind.TOOL, ToolFacts((call,)), number, 1, start=start, end=end, failed=failed))
        else:
            told = ModelFacts("m", draw(st.sampled_from(("m1",) * 9 + (None,))), Tokens(tokens, 10))
            spans.append(agent_span(Kind.MODEL, told, number, 1, start=start, end=end, failed=failed))
    by_kind = {kind: draw(st.sampled_from(sessions)) for kind in (Kind.AGENT, Kind.MODEL, Kind.TOOL)}
    spans = [span._replace(session=by_kind[span.kind]) for span in spans]
    root, odd = draw(st.sampled_from(_ROOTS)), draw(st.sampled_from(_ODD))
    spans[0] = spans[0]._replace(**root)
    at = draw(st.integers(0, len(spans) - 1))
    spans = [*spans[:at], spans[at]._replace(**odd), *spans[at + 1 :]]
    return draw(st.permutations(spans)) if draw(st.booleans()) else spans


_ROOTS: list[dict[str, Any]] = [
    {},
    {"failed": True},
    {"threshold": 1 << 55},
    {"parent_id": b"elsewhere", "parent_remote": True},
    {"parent_id": b"elsewhere", "parent_remote": False},
    {"extra": (("tier", "gold"),)},
    {"resource": Resource("shops", "shop", "prod")},
]
_ODD: list[dict[str, Any]] = [
    *[{}] * 6,
    {"parent_id": b"elsewhere"},
    {"start_ns": 1 << 70, "end_ns": (1 << 70) + 1},
    {"start_ns": -5},
    {"start_ns": 0},
    {"end_ns": 1 << 62},
    {"span_id": b"1234567"},
    {"trace_id": b"1234567"},
    {"facts": None},
    {"notes": Notes(task_id="refund", trial=1)},
    {"evaluations": (Evaluation("success", 1.0, None, 1),)},
    {"scope": "another"},
    {"facts": ModelFacts("m", None, Tokens(None, 1))},
    {"facts": ModelFacts("m", None, Tokens(1 << 50, 1))},
    {"facts": ModelFacts("m", None, Tokens(-9, 1), asked_for_tools=True)},
    {"facts": ModelFacts("m", None, Tokens(9, 1), cost=0.5)},
    {"facts": ModelFacts(None, None, Tokens(9, 1))},
    {"facts": InvocationFacts("support", expects_finish=True)},
    {"facts": InvocationFacts("support", hides_failure=True)},
    {"facts": InvocationFacts("support", emits_no_tools=True)},
    {"facts": InvocationFacts("support", tokens=Tokens(1, 1))},
    {"facts": InvocationFacts("support", weak=True)},
    {"facts": InvocationFacts("")},
]


@needs_native
@given(usual_runs(), st.sampled_from((SETTINGS, BY_STATUS, AS_STARTED)))
def test_usual_runs_are_made_at_once(spans: list[AgentSpan], settings: Settings) -> None:
    """And are what Python makes of them; what is unusual about them is left to Python."""
    bundle = bundle_of(spans)
    plain = run_of(bundle, settings, None, compiled=False)

    assert run_of(bundle, settings, CALLER, compiled=False) == plain
    assert run_of(bundle, settings, CALLER, compiled=True) == plain


@needs_native
@pytest.mark.parametrize("number", [200, 1_300])
def test_more_calls_than_are_told_apart_at_once(number: int) -> None:
    """Are told apart, or put in order, in Python, and their run is the same."""
    calls = [tool(at, 1, "search", call_id=f"{at}", start=at, end=at + 3.0) for at in range(2, 2 + number)]
    bundle = bundle_of([agent(1, end=9_999.0), *calls[::-1]])

    assert run_of(bundle, SETTINGS, CALLER, compiled=True) == run_of(bundle, SETTINGS, None, compiled=False)


@needs_native
def test_a_usual_run_needs_no_looks_for_garbage() -> None:
    """Nothing that it holds can lead back to it."""
    run = Builder(SETTINGS).simple.at_once(bundle_of(RUN), CloseReason.ROOT)

    assert run is not None
    assert not any(map(gc.is_tracked, (run, run.tool_calls, run.model_calls)))
    assert hash(run) == hash(Run._make(run))


@needs_native
@pytest.mark.parametrize("number", [1, 13, 128 * 12 + 1])
def test_rows_that_are_not_whole_are_left_to_python(number: int) -> None:
    """Whoever ran out of memory may have put in half a row: nothing beyond it is read or written."""
    models, tools, others = Models(), Tools(), [RUN[0]]
    models.extend([RUN[1].span_id] * number)
    assert compiled.lay_down(models, tools) is None
    assert not compiled.are_distinct(models, tools, others)
    assert not compiled.hang_on(models, tools, RUN[1].span_id)
    assert NATIVE.Caller(ModelCalls, ToolCalls).models(models, "a") is None
    assert compiled.take_rows(list(RUN[1:]), 0, models, tools, 9) == 0
    assert len(models) == number


@needs_native
def test_rows_that_somebody_empties_are_not_read_on() -> None:
    """While it is asked what the calls are to one another."""
    bundle = bundle_of([agent(1), *(tool(at, 1, "search", start=float(at), end=at + 0.5) for at in range(2, 9))])

    def emptied(*_: object) -> tuple[bool, bool, int]:
        bundle.tools.clear()
        return False, False, 0

    with pytest.raises(IndexError):
        NATIVE.Caller(ModelCalls, ToolCalls).tools(bundle.tools, "a", emptied, bundle.models, True)


@needs_native
def test_what_rows_are_alike_in_is_looked_at() -> None:
    """It is compared field by field, and there may be too few."""
    models = Models()
    models.shared = ()
    with pytest.raises(TypeError, match="other fields"):
        compiled.take_rows([RUN[1]], 0, models, Tools(), 9)
    assert compiled.take_rows([RUN[1]], -1, Models(), Tools(), 9) == 0


def bundle_of(spans: Sequence[AgentSpan]) -> Bundle:
    """These spans in one."""
    bundle = Bundle(spans[0].trace_id, 0.0)
    for span in spans:
        bundle.keep(span)
    return bundle


def run_of(bundle: Bundle, settings: Settings, caller: object, *, compiled: bool) -> object:
    """The run of a bundle, its calls made by this, and whether all at once; and how its calls are held."""
    simple = Builder(settings).simple
    simple._caller = caller
    if not compiled:
        simple.maker = None
    run = simple.build(bundle, CloseReason.ROOT)
    if run is None:
        return None
    assert isinstance(run.tool_calls, ToolCalls)
    assert isinstance(run.model_calls, ModelCalls)
    return run, run.tool_calls.columns, run.model_calls.columns


@pytest.mark.parametrize("order", list(permutations(RUN)))
def test_ids_are_told_apart(order: tuple[AgentSpan, ...]) -> None:
    """By the compiled module as in Python."""
    bundle = bundle_of(order)
    held = bundle.models, bundle.tools, bundle.others

    assert compiled.are_distinct(*held)
    assert rows.are_distinct(*held)
    bundle.keep(order[0])
    assert not compiled.are_distinct(*held)
    assert not rows.are_distinct(*held)


@needs_native
@given(usual_runs() | plain_runs())
def test_the_same_rows_are_laid_down(spans: list[AgentSpan]) -> None:
    """To the byte, in the same order, and those that have no place there by neither; their ids are the same too."""
    bundle = bundle_of(spans)
    plain = resting.lay_down(bundle.models, bundle.tools)

    assert compiled.lay_down(bundle.models, bundle.tools) == plain
    if plain is not None:
        assert compiled.ids_of(plain, bundle.others) == resting.ids_of(plain, bundle.others)
        held = bundle.models, bundle.tools
        for wake in (resting.wake, compiled.wake):
            woken = wake(plain)
            assert woken == held
            assert [one.standing for one in woken] == [one.standing for one in held]


@needs_native
@given(usual_runs() | plain_runs(), st.sampled_from((None, 0, 1, 3)), st.integers(0, 2))
def test_spans_are_sought_among_rows_at_rest(spans: list[AgentSpan], again: int | None, odd: int) -> None:
    """One that is there, one that others hang on, one of which nobody knows, two of one id, ids of another length."""
    bundle = bundle_of(spans)
    rest = resting.lay_down(bundle.models, bundle.tools)
    if rest is None:
        return
    others = [*bundle.others, *([] if again is None else [spans[min(again, len(spans) - 1)]])]
    others += [one._replace(span_id=b"short", parent_id=b"longer than others") for one in spans[:1]] * odd
    parents = [one.parent_id for one in others if one.parent_id is not None]
    for sought in (*[one.span_id for one in spans], *parents, b"unheard!", b"short", b""):
        assert compiled.seek(rest, others, sought) == resting.seek(rest, others, sought)


@needs_native
@pytest.mark.parametrize("number", [126, 127, 128, 129, 600])
@pytest.mark.parametrize("twice", [False, True])
def test_spans_are_sought_among_many(number: int, twice: bool) -> None:
    """Where they are too many to be compared each with each."""
    spans = [agent(1), *(model(at, 1) for at in range(2, number + 1)), *([model(2, 1)] if twice else [])]
    bundle = bundle_of(spans)
    rest = resting.lay_down(bundle.models, bundle.tools)
    assert rest is not None
    for sought, found in ((1, 3), (number, 1), (number + 1, 0)):
        expected = found + resting.DOUBTFUL * twice
        assert compiled.seek(rest, bundle.others, span_id(sought)) == expected
        assert resting.seek(rest, bundle.others, span_id(sought)) == expected


@needs_native
@given(usual_runs() | plain_runs(), st.integers(0, 9))
def test_rows_at_rest_are_joined(spans: list[AgentSpan], at: int) -> None:
    """To what they are together, if those of both parts are alike, and what was told twice is told once."""
    one, other = (bundle_of([spans[0], *some]) for some in (spans[:at], spans[at:]))
    rest, more = (resting.lay_down(part.models, part.tools) for part in (one, other))
    if rest is None or more is None:
        return
    together = compiled.joined(rest, more)

    assert together == resting.joined(rest, more)
    assert (together is not None) == one.can_take(other.models, other.tools)
    if together is not None:
        one.keep_all(other.models, other.tools, [])
        woken = compiled.wake(together)
        assert woken == (one.models, one.tools)
        assert [part.standing[:3] for part in woken] == [part.standing[:3] for part in (one.models, one.tools)]
        assert together[4] == one.count - len(one.others)
        assert len(together[1]) <= len(rest[1]) + len(more[1])


@needs_native
@given(usual_runs())
def test_calls_are_unpacked_as_they_are(spans: list[AgentSpan]) -> None:
    """What packed calls tell without a look at their columns is what the columns tell, before and after a copy."""
    run = Builder(SETTINGS).simple.at_once(bundle_of(spans), CloseReason.ROOT)
    if run is None:
        return
    again: Run = pickle.loads(pickle.dumps(run))
    for calls in (run.model_calls, run.tool_calls):
        if isinstance(calls, Columns) and (rest := calls.packed) is not None:
            assert packed.models_in(rest, "a") == packed.plain_models_in(rest, "a")
            assert packed.tools_in(rest) == packed.plain_tools_in(rest)
    for one in (run, again):
        models, tools = ModelCalls.of(one.model_calls), ToolCalls.of(one.tool_calls or ())
        told = len(models), models.duration_ns, models.largest_input, models.replies
        called = len(tools), tools.names, tools.failed, tools.retries, tools.repeats
        packed_models, packed_tools = ModelCalls(models.columns), ToolCalls(tools.columns)
        assert told == (
            len(packed_models), packed_models.duration_ns, packed_models.largest_input, packed_models.replies,
        )  # fmt: skip
        assert called == (
            len(packed_tools), packed_tools.names, packed_tools.failed, packed_tools.retries, packed_tools.repeats,
        )  # fmt: skip
        assert models.packed is tools.packed is None
    assert run == again == Run._make(run)


@needs_native
@given(usual_runs(), st.data())
def test_packed_calls_that_are_cut_off_are_not_read(spans: list[AgentSpan], data: st.DataObject) -> None:
    """Whatever is told of them: nothing beyond their bytes is looked at, and what does not fit is left to Python."""
    bundle = bundle_of(spans)
    packed = compiled.lay_down(bundle.models, bundle.tools)
    if packed is None:
        return
    size = data.draw(st.integers(0, len(packed[0])))
    cut = packed[0][:size]
    maker = Builder(SETTINGS).simple.maker
    if size < 8 + 64 * packed[4]:
        assert maker.make((cut, *packed[1:]), bundle.others, CloseReason.ROOT) is None
        spoilt = (cut, *packed[1:])
        with pytest.raises(ValueError, match="cut off"):
            compiled.wake(spoilt)
        with pytest.raises(ValueError, match="cut off"):
            compiled.ids_of(spoilt, bundle.others)
        with pytest.raises(ValueError, match="cut off"):
            compiled.seek(spoilt, bundle.others, b"unheard!")
        with pytest.raises(ValueError, match="cut off"):
            compiled.joined(packed, spoilt)
    assert maker.make((packed[0], (), *packed[2:]), bundle.others, CloseReason.ROOT) is None or not packed[4]
    for odd in (
        (),
        None,
        packed[:4],
        (None, *packed[1:]),
        (*packed[:2], (), *packed[3:]),
        (packed[0], None, *packed[2:]),
    ):
        assert maker.make(odd, bundle.others, CloseReason.ROOT) is None
    for odd in ((), None, packed[:4], (None, *packed[1:])):
        with pytest.raises(TypeError):
            compiled.wake(odd)  # pyright: ignore[reportArgumentType]  # test


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

    assert compiled.ids_of(resting.NO_ROWS, odd) is None
    assert resting.ids_of(resting.NO_ROWS, odd) is None
    assert rows.packed(Models(), Tools(), odd) is None
    assert rows.are_distinct(Models(), Tools(), odd)


@needs_native
@pytest.mark.parametrize("text", ["a much longer text", "", None, 7])
def test_rows_that_change_while_they_are_laid_down_are_not_written_beyond(text: Any) -> None:
    """Garbage is looked for while they are, and whoever is told of that may reach them."""
    bundle = bundle_of([agent(1), *(tool(at, 1, "search", call_id=f"{at}") for at in range(2, 40))])
    at = rows.CALL_ID

    def changed(phase: str, info: dict[str, int]) -> None:
        bundle.tools[at] = text

    thresholds = gc.get_threshold()
    gc.callbacks.append(changed)
    try:
        gc.set_threshold(1)
        found = compiled.lay_down(bundle.models, bundle.tools)
    except (IndexError, TypeError):
        found = None
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(changed)
    bundle.tools[at] = "2"
    assert found is None or compiled.wake(found)[0] == bundle.models
