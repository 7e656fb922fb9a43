from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.record import (
    BadRecord,
    Damaged,
    RunRecord,
    pack,
    pack_run,
    pack_spans,
    read,
    read_run,
    unpack_run,
    unpack_spans,
    write,
    write_run,
)
from otel_reliability.model.run import AgentKey, CloseReason, ModelCall, Outcome, Run, RunChange, ToolCall, Tools
from otel_reliability.model.span import AgentSpan, CompressionFacts, Evaluation, HandoffFacts, Kind, Notes, Session
from otel_reliability.testing import agent, call, model, run, tool

TEXT = st.text(max_size=8)
TIME = st.integers(0, 2**63 - 1)
WHOLE = st.integers(-(2**63) + 1, 2**63 - 1)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple)
HASH = st.none() | st.binary(min_size=8, max_size=8)
TRACE, SPAN = st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)
CALLS = st.builds(
    ToolCall, TEXT, st.booleans(), st.booleans(), st.booleans(), st.integers(0, 9), TEXT, TIME, TIME, HASH, HASH, HASH
)
MODEL_CALLS = st.builds(
    ModelCall, st.none() | TEXT, st.none() | WHOLE, st.none() | WHOLE, st.booleans(), TEXT, TIME, TIME
)
EVALUATIONS = st.builds(
    Evaluation, TEXT, st.none() | NUMBER, st.none() | TEXT, TIME, st.none() | TRACE, st.none() | SPAN, st.none() | TEXT
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


def without_hashes(run: Run) -> Run:
    """Return the run as a record has it: without the hashes of arguments and results."""
    calls = run.tool_calls
    bare = None if calls is None else tuple(one._replace(arguments=None, result=None) for one in calls)
    return run._replace(tool_calls=bare)


@given(runs(), st.sampled_from(RunChange), TIME)
def test_a_record_survives_json(one: Run, change: RunChange, when: int) -> None:
    assert read(write(RunRecord(change, one, when))) == RunRecord(change, without_hashes(one), when)


@given(runs())
def test_a_run_survives_the_state(one: Run) -> None:
    assert unpack_run(pack_run(one)) == one


@given(st.binary(max_size=40), st.integers(0, 400))
def test_changed_bytes_are_noticed(noise: bytes, at: int) -> None:
    sound = pack_run(run(["search"]))
    changed = sound[: at % len(sound)] + noise + sound[at % len(sound) + len(noise) :]

    if changed != sound:
        with pytest.raises(Damaged):
            unpack_run(changed)


def test_of_the_hashes_only_the_effect_leaves() -> None:
    """What a call was asked and what it answered stay in the process even as hashes; its effect is needed downstream."""
    paid = call("pay", arguments=b"argument", result=b"resultss", effect=b"effectss")
    (found,) = write_run(run(tool_calls=(paid,)))["tool_calls"]

    assert list(found[-4:]) == [None, None, base64.b64encode(b"effectss").decode(), True]


def test_bytes_without_a_new_field_are_read() -> None:
    """A field that is added at the end of a type, with a default, is absent in what was written before."""
    one = run(["search"])

    assert unpack_run(pack(list(one)[:-1])) == one
    raw = write_run(one)
    del raw["closed_by"]
    assert read_run(raw).closed_by is CloseReason.ROOT


def test_spans_survive_the_state() -> None:
    spans = [
        agent(1, called="a", session=Session(0, "s")),
        tool(2, 1, "search", failed=True),
        model(3, 1, start=0.5),
        span_of(4, 1, Kind.HANDOFF, HandoffFacts("next")),
        span_of(5, 1, Kind.OTHER, None),
        span_of(6, 1, Kind.COMPRESSION, CompressionFacts(9, 1, "auto")),
    ]
    bare = [one._replace(resource=one.resource._replace(attributes={})) for one in spans]

    assert unpack_spans(pack_spans(spans)) == bare


def span_of(number: int, parent: int, kind: Kind, facts: HandoffFacts | CompressionFacts | None) -> AgentSpan:
    notes = Notes(task_id="t", branches=(("route", "a"),))
    return tool(number, parent, "x")._replace(kind=kind, facts=facts, notes=notes, link=(b"t" * 16, b"s" * 8))


def test_text_and_numbers_that_no_encoder_sends_are_stored_all_the_same() -> None:
    odd = run(["\ud800"], trial=2**70)
    found = unpack_run(pack_run(odd))

    assert (found.path, found.trial) == (("?",), 2**63 - 1)
    assert read(write(RunRecord(RunChange.CLOSED, odd, 1))).run.path == ("?",)


@pytest.mark.parametrize("field", ["version", "change", "revision", "run"])
def test_a_field_that_is_missing_is_named(field: str) -> None:
    record = json.loads(write(RunRecord(RunChange.CLOSED, run(), 1)))
    del record[field]

    with pytest.raises(BadRecord, match=field):
        read(record)


@pytest.mark.parametrize("raw", [None, [], "{", b"\xff", 7])
def test_what_is_no_object_is_no_record(raw: object) -> None:
    with pytest.raises(BadRecord, match="JSON object"):
        read(raw)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", 7),
        ("run_id", "x" * 300),
        ("trace_id", "AAAA"),
        ("trace_id", "xyz"),
        ("root_span_id", ["00"]),
        ("key", ["", "shop"]),
        ("key", ["", "shop", "", "agent", [["a", 1]]]),
        ("trial", 1.5),
        ("nested", 1),
        ("start_ns", -1),
        ("end_ns", 0),
        ("end_ns", 2**63),
        ("path", "search"),
        ("path", [1]),
        ("tools", "guessed"),
        ("tool_calls", [["search"]]),
        ("model_calls", None),
        ("token_pressure", "high"),
        ("confidence", True),
        ("outcome", "excellent"),
        ("violations", [["constraint"]]),
        ("evaluations", [[""]]),
        ("weight", 0),
        ("span_count", -1),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(field: str, value: object) -> None:
    raw = {**write_run(run(["search"])), field: value}

    with pytest.raises(BadRecord, match=f"run.({field}|\\w+ or run.{field}|\\w+ is before)"):
        read_run(raw)


@given(st.data())
def test_a_damaged_record_is_refused_or_read(data: st.DataObject) -> None:
    raw = write_run(run(["search"]))
    field = data.draw(st.sampled_from(sorted(raw)))
    raw[field] = data.draw(st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.text()))
    try:
        found = read_run(raw)
    except BadRecord:
        return
    assert found.start_ns <= found.end_ns
    assert read_run(write_run(found)) == found
