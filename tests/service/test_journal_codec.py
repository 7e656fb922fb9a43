"""A request that was written down is read back equal, and damaged bytes are never taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.model.event import RunChange
from otel_reliability.model.record import RunRecord
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    Evaluation,
    Facts,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
    Resource,
    Session,
    Tokens,
    ToolFacts,
)
from otel_reliability.service import journal_codec as codec
from otel_reliability.service.decoded import Decoded
from otel_reliability.testing import agent, model, run, tool
from tests.service.keeping import request


def resource_of(identity: tuple[str, str, str]) -> Resource:
    """A resource as it is read back."""
    return Resource(*identity)


SHOP = Resource("", "shop", "")
RUN = (
    model(2, 1, start=0.1, end=0.2, resource=SHOP),
    tool(3, 1, "search", start=0.3, end=0.4, resource=SHOP),
    agent(1, resource=SHOP),
)
TEXT = st.none() | st.text(max_size=5)
DIGEST = st.none() | st.binary(max_size=8)
WHOLE = st.none() | st.integers(0, 2**63)
PAIRS = st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=2).map(tuple)
EVALUATIONS = st.builds(
    Evaluation, st.text(max_size=3), st.none() | st.floats(0, 1), TEXT, st.integers(0, 2**63), DIGEST, DIGEST, TEXT
)
CALLS = st.builds(Call, TEXT, TEXT, DIGEST, st.booleans(), DIGEST, DIGEST)
TOKENS = st.builds(Tokens, WHOLE, WHOLE)
NAMES = st.lists(st.text(max_size=3), max_size=2).map(tuple)
FACTS: st.SearchStrategy[Facts | None] = st.one_of(
    st.none(),
    st.builds(HandoffFacts, TEXT),
    st.builds(ToolFacts, st.lists(CALLS, max_size=2).map(tuple), st.booleans()),
    st.builds(
        ModelFacts, TEXT, TEXT, TOKENS, st.booleans(), st.booleans(), st.lists(CALLS, max_size=2).map(tuple), WHOLE
    ),
    st.builds(
        InvocationFacts,
        name=TEXT,
        weak=st.booleans(),
        tokens=st.none() | TOKENS,
        call=st.none() | CALLS,
        manages=NAMES,
        called_as=TEXT,
    ),
)
NUMBER = st.none() | st.floats(allow_nan=False)  # the doors refuse what is no number
NOTES = st.builds(
    Notes,
    task_id=TEXT,
    trial=WHOLE,
    success=st.none() | st.booleans(),
    reward=NUMBER,
    confidence=NUMBER,
    cost=NUMBER,
    violations=st.none() | PAIRS,
    branches=PAIRS,
)
SPANS = st.builds(
    AgentSpan,
    trace_id=st.binary(min_size=16, max_size=16),
    span_id=st.binary(min_size=8, max_size=8),
    parent_id=st.none() | st.binary(min_size=8, max_size=8),
    parent_remote=st.none() | st.booleans(),
    start_ns=st.integers(0, 2**64),
    end_ns=st.integers(0, 2**64),
    span_kind=st.integers(0, 5),
    kind=st.sampled_from(Kind),
    failed=st.booleans(),
    facts=FACTS,
    scope=st.text(max_size=5),
    resource=st.tuples(st.text(max_size=3), st.text(max_size=3), st.text(max_size=3)).map(resource_of),
    session=st.none() | st.builds(Session, st.integers(0, 9), st.text(max_size=5)),
    notes=st.none() | NOTES,
    evaluations=st.lists(EVALUATIONS, max_size=2).map(tuple),
    link=st.none() | st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8)),
    threshold=WHOLE,
    extra=PAIRS,
)


@given(
    spans=st.lists(SPANS, max_size=3),
    evaluations=st.lists(EVALUATIONS, max_size=2),
    malformed=st.dictionaries(st.text(max_size=5), st.integers(1, 9), max_size=2),
    other=st.integers(0, 9),
)
def test_what_is_written_is_read_back(
    spans: list[AgentSpan], evaluations: list[Evaluation], malformed: dict[str, int], other: int
) -> None:
    """Every field of every span, and every type."""
    whole = Decoded(tuple(spans), tuple(evaluations), (), malformed, "", other)
    found = codec.read(codec.write(whole))
    assert found == whole
    assert [type(span.facts) for span in found.spans] == [type(span.facts) for span in spans]


def test_what_a_later_version_wrote_is_not_read() -> None:
    """Nobody knows what it means."""
    with pytest.raises(codec.Damaged, match="version 9"):
        codec.read(b"\x09" + codec.write(request(1))[1:])


def test_run_records_are_read_back() -> None:
    """As another service told them."""
    told = Decoded(records=(RunRecord(RunChange.CLOSED, run(["search"]), 7),))
    (found,) = codec.read(codec.write(told)).records
    assert (found.change, found.told_ns, found.run.path) == (RunChange.CLOSED, 7, ("search",))


def test_attributes_of_resources_are_not_written() -> None:
    """They may hold anything, and whatever of them counts has been read."""
    resource = Resource("", "shop", "", {"secret": "a long text of theirs"})
    written = codec.write(Decoded(spans=(agent(1, resource=resource),)))
    assert b"theirs" not in written
    assert b"shop" in written


@given(at=st.integers(0), bit=st.integers(0, 7))
def test_no_changed_bit_goes_unnoticed(at: int, bit: int) -> None:
    """Wherever it is."""
    written = bytearray(codec.write(request(1)))
    written[at % len(written)] ^= 1 << bit
    with pytest.raises(codec.Damaged):
        codec.read(bytes(written))


@given(size=st.integers(0))
def test_no_cut_goes_unnoticed(size: int) -> None:
    """Wherever it is cut."""
    written = codec.write(request(1))
    with pytest.raises(codec.Damaged):
        codec.read(written[: size % len(written)])
