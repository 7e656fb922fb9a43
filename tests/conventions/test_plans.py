from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.conventions import TABLE
from otel_reliability.conventions.base import Convention
from otel_reliability.conventions.plans import LONGEST_KEYS, MOST_KEYS, PLAN_BYTES, Plans
from otel_reliability.conventions.room import Room
from otel_reliability.model.span import Kind, RawSpan
from otel_reliability.sources.otlp import decode_traces
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import span, traces_protobuf
from tests.conventions.reading import HASHER, READER, reader
from tests.conventions.test_totality import KEYS, spans
from tests.sources.recordings import every_recording


def unshared(keys: tuple[str, ...], conventions: tuple[Convention, ...]) -> None:
    """No stencils."""


def plans() -> Plans:
    """The plans of a scope that any convention keyed on attributes may know."""
    return Plans(
        "scope",
        tuple(c for c in TABLE if not c.scopes),
        READER.wanted,
        READER.wanted_prefixes,
        Room(lambda: None),
        unshared,
    )


@every_recording
def test_spans_read_from_undecoded_attributes_are_the_same(recording: Path) -> None:
    """Whether a span's attributes come decoded or not, its reading is the same: the short way beside the long one."""
    for batch in read_file(recording):
        lazy = decode_traces(traces_protobuf(batch.spans)).spans

        assert [READER.read(one) for one in lazy] == [READER.read(one) for one in batch.spans]


@given(spans())
def test_any_span_is_read_the_same_undecoded(raw: RawSpan) -> None:
    """The same with anything under the keys that are looked at, as far as the wire can carry it."""
    attributes = carried(raw)
    events = tuple(event._replace(attributes=attributes) for event in raw.events)
    (lazy,) = decode_traces(traces_protobuf([raw._replace(attributes=attributes, events=events)])).spans
    plain = lazy._replace(attributes=dict(lazy.attributes))

    assert READER.read(lazy) == READER.read(plain)


def carried(raw: RawSpan) -> dict[str, object]:
    """The attributes that the wire can carry: integers of 64 bits, texts without half characters."""
    kept: dict[str, object] = {}
    for key, value in raw.attributes.items():
        try:
            traces_protobuf([raw._replace(attributes={key: value}, events=())])
        except (ValueError, UnicodeEncodeError):
            continue
        kept[key] = value
    return kept


@given(spans())
def test_who_is_not_asked_does_not_know_it(raw: RawSpan) -> None:
    """A convention that needs a key which is not there would have answered None."""
    asked = plans().of(tuple(raw.attributes)).conventions

    for convention in TABLE:
        if not convention.scopes and convention not in asked:
            assert convention.read(raw, HASHER) is None


@given(st.lists(st.sampled_from(KEYS), unique=True))
def test_a_plan_takes_what_is_wanted(keys: list[str]) -> None:
    """The values it takes are those of its keys, in their order, however many there are."""
    plan = plans().of(tuple(keys))

    assert plan.take({key: number for number, key in enumerate(keys)}) == tuple(map(keys.index, plan.keys))
    assert "nobody.knows" not in plan.keys


def test_a_plan_is_made_once() -> None:
    """The same keys in the same order have the same plan."""
    own = plans()

    assert own.of(("a", "b")) is own.of(("a", "b"))


def test_invented_keys_cost_no_memory_without_end() -> None:
    """Ever new keys in ever new scopes are read like any, and what is known of them is bounded, all scopes together."""
    own = reader()
    own._room = Room(own._by_scope.clear, most=100 * PLAN_BYTES)
    for number in range(300):
        raw = span(scope=f"scope {number % 7}", attributes={"gen_ai.operation.name": "retrieval", f"key {number}": 1})
        assert own.read(raw).kind is Kind.RETRIEVAL

    assert sum(len(plans.known) for plans in own._by_scope.values()) <= 100


def test_too_many_keys_are_not_kept() -> None:
    """Nor keys that are too long: a span with thousands is read, and forgotten."""
    own = plans()
    many, long = tuple(map(str, range(MOST_KEYS + 1))), ("k" * (LONGEST_KEYS + 1),)

    assert own.of(many) == own.of(many)
    assert own.of(many) is not own.of(many)
    assert own.of(long) is not own.of(long)


def test_a_span_without_attributes_is_read() -> None:
    """No key, no value, no trouble."""
    (lazy,) = decode_traces(traces_protobuf([span(name="GET /")])).spans

    assert READER.read(lazy) == READER.read(span(name="GET /"))
