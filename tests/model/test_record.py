from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.event import RunChange
from otel_reliability.model.record import BadRecord, RunRecord, carefully, read, read_run, write, write_run
from otel_reliability.model.record_plain import plain_run
from otel_reliability.model.run import AgentKey, CloseReason, ModelCall, Outcome, Run, ToolCall, Tools
from otel_reliability.model.span import Evaluation
from otel_reliability.testing import call, run

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


def told(of: Run) -> Run:
    """A run as a record tells it: without the hashes of arguments and results."""
    calls = of.tool_calls
    bare = None if calls is None else tuple(one._replace(arguments=None, result=None) for one in calls)
    return of._replace(tool_calls=bare)


@given(runs(), st.sampled_from(RunChange), TIME)
def test_a_record_survives_json(one: Run, change: RunChange, when: int) -> None:
    """Whatever a run holds comes back from the text of its record, but for the hashes of arguments and results."""
    text = json.dumps(write(RunRecord(change, one, when)))

    assert read(json.loads(text)) == RunRecord(change, told(one), when)


def test_of_the_hashes_only_the_effect_leaves() -> None:
    """What a call was asked and what it answered stay behind even as hashes; what it changed is needed downstream."""
    arguments, result, effect = b"argument", b"resultss", b"effectss"
    paid = call("pay", arguments=arguments, result=result, effect=effect)
    text = json.dumps(write_run(run(tool_calls=(paid,))))

    assert effect.hex() in text
    assert arguments.hex() not in text
    assert result.hex() not in text


def test_every_field_of_a_run_is_in_its_record() -> None:
    """A field added to runs is told, or this fails."""
    assert set(write_run(run())) == set(Run._fields)


@pytest.mark.parametrize("field", ["version", "change", "told_ns", "run"])
def test_a_field_that_is_missing_is_named(field: str) -> None:
    """Half a record is none."""
    record = write(RunRecord(RunChange.CLOSED, run(), 1))
    del record[field]

    with pytest.raises(BadRecord, match=field):
        read(record)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", 7),
        ("trace_id", "00"),
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
        ("token_pressure", float("nan")),
        ("confidence", 10**400),
        ("confidence", True),
        ("outcome", "excellent"),
        ("violations", [["constraint"]]),
        ("evaluations", [[""]]),
        ("weight", 0),
    ],
)
def test_a_field_that_cannot_be_is_refused(field: str, value: object) -> None:
    """Anybody may have sent it: no wrong type, length or range comes through, and what is wrong is said without content."""
    raw = {**write_run(run(["search"])), field: value}

    with pytest.raises(BadRecord):
        read_run(raw)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    )
)
def test_nothing_else_is_a_record(raw: Any) -> None:
    """What is no record is refused as one, and raises nothing else."""
    with pytest.raises(BadRecord):
        read(raw)


@given(st.data())
def test_a_damaged_record_is_refused_or_read(data: st.DataObject) -> None:
    """One field replaced by anything: a run with sound fields, or a refusal."""
    raw = write_run(run(["search"]))
    field = data.draw(st.sampled_from(sorted(raw)))
    raw[field] = data.draw(st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.text()))
    try:
        found = read_run(raw)
    except BadRecord:
        return
    assert found.start_ns <= found.end_ns
    assert read_run(json.loads(json.dumps(write_run(found)))) == found


@given(runs())
def test_runs_without_judgements_are_read_the_short_way(one: Run) -> None:
    """And are what the careful reader gives."""
    raw = json.loads(json.dumps(write_run(one._replace(evaluations=()))))

    assert plain_run(raw) == carefully(raw)


@given(runs(), st.data())
def test_the_short_way_lets_nothing_through_that_is_refused(one: Run, data: st.DataObject) -> None:
    """Anything replaced by anything, at any depth: the short way gives what the careful one gives, or nothing."""
    raw: Any = json.loads(json.dumps(write_run(one)))
    place: Any = raw
    while True:
        at = data.draw(st.sampled_from(list(place) if place is raw else range(len(place))))
        inner: Any = place[at]
        if not isinstance(inner, list) or not inner or data.draw(st.booleans()):
            break
        place = place[at]
    odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300) | st.lists(st.text())
    place[at] = data.draw(odd)
    found = plain_run(raw)
    if found is not None:
        assert found == carefully(raw)
