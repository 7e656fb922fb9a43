from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from otel_reliability.model.record import (
    VERSION,
    BadRecord,
    Damaged,
    RunRecord,
    pack,
    pack_spans,
    read,
    unpack,
    unpack_run,
    unpack_spans,
    without_hashes,
    write,
)
from otel_reliability.model.run import (
    AgentKey,
    CloseReason,
    ModelCall,
    Outcome,
    Run,
    RunChange,
    ToolCall,
    Tools,
)
from otel_reliability.model.span import (
    AgentSpan,
    CompressionFacts,
    Evaluation,
    HandoffFacts,
    Kind,
    Notes,
    Session,
)
from otel_reliability.testing import agent, at, call, model, run, span_id, tool, trace_id

TEXT = st.text(max_size=8)
TIME = st.integers(0, 2**63 - 1)
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple)
HASH = st.none() | st.binary(min_size=8, max_size=8)
TRACE = st.binary(min_size=16, max_size=16)
SPAN = st.binary(min_size=8, max_size=8)
CALLS = st.builds(
    ToolCall,
    TEXT,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
    TEXT,
    TIME,
    TIME,
    HASH,
    HASH,
    HASH,
)
MODEL_CALLS = st.builds(
    ModelCall,
    st.none() | TEXT,
    st.none() | WHOLE,
    st.none() | WHOLE,
    st.booleans(),
    TEXT,
    TIME,
    TIME,
    st.none() | WHOLE,
)
EVALUATIONS = st.builds(
    Evaluation,
    TEXT,
    st.none() | NUMBER,
    st.none() | TEXT,
    TIME,
    st.none() | TRACE,
    st.none() | SPAN,
    st.none() | TEXT,
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run that the assembly could build, and many that it would not."""
    start, end = sorted((draw(TIME), draw(TIME)))
    return Run(
        run_id=draw(TEXT),
        trace_id=draw(TRACE),
        root_span_id=draw(st.none() | SPAN),
        key=AgentKey(draw(TEXT), draw(TEXT), draw(TEXT), draw(TEXT), draw(PAIRS)),
        session_id=draw(st.none() | TEXT),
        task_id=draw(st.none() | TEXT),
        trial=draw(st.none() | WHOLE),
        condition=draw(TEXT),
        input_class=draw(st.none() | TEXT),
        branches=draw(PAIRS),
        nested=draw(st.booleans()),
        implicit=draw(st.booleans()),
        incomplete=draw(st.booleans()),
        start_ns=start,
        end_ns=end,
        path=draw(st.none() | st.lists(TEXT, max_size=3).map(tuple)),
        tools=draw(st.sampled_from(Tools)),
        tool_calls=draw(st.none() | st.lists(CALLS, max_size=2).map(tuple)),
        model_calls=draw(st.lists(MODEL_CALLS, max_size=2).map(tuple)),
        input_tokens=draw(st.none() | WHOLE),
        output_tokens=draw(st.none() | WHOLE),
        token_pressure=draw(st.none() | NUMBER),
        arguments_known=draw(st.booleans()),
        outcome=draw(st.sampled_from(Outcome)),
        outcome_source=draw(TEXT),
        confidence=draw(st.none() | NUMBER),
        cost=draw(st.none() | NUMBER),
        violations=draw(st.none() | PAIRS),
        evaluations=draw(st.lists(EVALUATIONS, max_size=2).map(tuple)),
        weight=draw(st.integers(1, 2**20)),
        span_count=draw(st.integers(0, 2**31)),
        closed_by=draw(st.sampled_from(CloseReason)),
    )


@given(runs(), st.sampled_from(RunChange), TIME)
def test_a_record_survives_kafka(one: Run, change: RunChange, when: int) -> None:
    assert read(write(RunRecord(change, one, when))) == RunRecord(change, without_hashes(one), when)


@given(runs())
def test_a_run_survives_the_state(one: Run) -> None:
    assert unpack_run(pack(one)) == one


@given(st.binary(max_size=40), st.integers(0, 400))
def test_changed_bytes_are_noticed(noise: bytes, at: int) -> None:
    sound = pack(run(["search"]))
    changed = sound[: at % len(sound)] + noise + sound[at % len(sound) + len(noise) :]

    if changed != sound:
        with pytest.raises(Damaged):
            unpack_run(changed)


def test_of_the_hashes_only_the_effect_leaves() -> None:
    """What a call was asked and what it answered stay in the process even as hashes; its effect is
    needed downstream.
    """
    paid = call("pay", arguments=b"argument", result=b"resultss", effect=b"effectss")
    written = write(RunRecord(RunChange.CLOSED, run(tool_calls=(paid,)), 1))

    assert read(written).run.tool_calls == (replace(paid, arguments=None, result=None),)
    assert not any(hashed in written for hashed in (b"argument", b"resultss"))


def test_bytes_without_a_new_field_are_read() -> None:
    """A field that is added at the end of a type, with a default, is absent in what was written
    before.
    """
    one = run(["search"])

    assert unpack_run(pack(list(astuple(one))[:-1])) == one
    assert read(pack((VERSION, (RunChange.CLOSED, list(astuple(one))[:-1], 1)))) == RunRecord(
        RunChange.CLOSED, one, 1
    )


def test_spans_survive_the_state() -> None:
    spans = [
        agent(1, called="a", session=Session(0, "s")),
        tool(2, 1, "search", failed=True),
        model(3, 1, start=0.5),
        span_of(4, 1, Kind.HANDOFF, HandoffFacts("next")),
        span_of(5, 1, Kind.OTHER, None),
        span_of(6, 1, Kind.COMPRESSION, CompressionFacts(9, 1, "auto")),
    ]
    bare = [replace(one, resource=replace(one.resource, attributes={})) for one in spans]

    assert unpack_spans(pack_spans(spans)) == bare


def test_stored_spans_are_arrays_whose_facts_say_their_number() -> None:
    """The form of the state is fixed: what an earlier version wrote is read, and nothing else is
    written.
    """
    call = ["search", None, b"arguments", False, None, None]
    ids = [trace_id(1), span_id(2), span_id(1), False, at(0), at(1), 1]
    row = [*ids, "tool", False, [2, [[call], False]], "test", 0]
    whole = [*ids, "tool", False, [2, [[call], False, None, None]], "test", 0]
    absent: list[object] = [None, None, [], None, None, []]
    span = tool(2, 1, "search")
    resource = replace(span.resource, attributes={})

    assert unpack_spans(pack(([["", "shop", "test", "", ""]], [row]))) == [
        replace(span, resource=resource)
    ]
    assert unpack(pack_spans([span])) == [[["", "shop", "test", "", ""]], [[*whole, *absent]]]


@pytest.mark.parametrize("facts", [[9, []], [2, [["no call"]]], [1], None])
def test_spans_with_other_facts_are_damaged(facts: object) -> None:
    ids = [trace_id(1), span_id(2), span_id(1), False, at(0), at(1), 1]
    row = [*ids, "tool", False, facts, "test", 0]

    with pytest.raises(Damaged):
        unpack_spans(pack(([["", "shop", "test", "", ""]], [row])))


def span_of(
    number: int, parent: int, kind: Kind, facts: HandoffFacts | CompressionFacts | None
) -> AgentSpan:
    notes = Notes(task_id="t", branches=(("route", "a"),))
    return replace(
        tool(number, parent, "x"), kind=kind, facts=facts, notes=notes, link=(b"t" * 16, b"s" * 8)
    )


def test_text_and_numbers_that_no_encoder_sends_are_stored_all_the_same() -> None:
    odd = run(["\ud800"], trial=2**70)
    found = unpack_run(pack(odd))

    assert (found.path, found.trial) == (("?",), 2**63 - 1)
    assert read(write(RunRecord(RunChange.CLOSED, odd, 1))).run.path == ("?",)


SOUND = write(RunRecord(RunChange.CLOSED, run(["search"]), 1))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "checksum"),
        (b"no record", "checksum"),
        (SOUND[:-1], "checksum"),
        (SOUND[:20] + b"\x00" + SOUND[21:], "checksum"),
        (pack(7), "another form"),
        (pack((VERSION, None)), "another form"),
        (pack((VERSION, ("opened", run(), 1))), "another form"),
        (pack((VERSION, (RunChange.CLOSED, run(trial="first"), 1))), "another form"),
        (
            pack((VERSION + 1, {"run": None})),
            f"version {VERSION + 1}; this service reads version {VERSION}",
        ),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(data: bytes, problem: str) -> None:
    with pytest.raises(BadRecord, match=problem):
        read(data)
