"""What the tests of conventions read with, and what they look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from otel_reliability.config import Settings
from otel_reliability.conventions import TABLE
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.model.span import (
    AgentSpan,
    Call,
    HandoffFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawLog,
    RawSpan,
    ToolFacts,
)
from otel_reliability.service.native_decoder import MODULE, NativeDecoder, load
from otel_reliability.sources.otlp_protobuf import read_traces
from tests.otlp import traces_protobuf

KEY: Final = b"the key of the tests"
HASHER: Final = Hasher(KEY)
Facts = TypeVar("Facts")


def reader(**settings: Any) -> Reader:
    return Reader(Settings.load({"hash_key": KEY.hex(), **settings}), TABLE)


READER: Final = reader()


def read(span: RawSpan, **settings: Any) -> AgentSpan:
    """A span in our vocabulary; from the wire, by either decoder, it is the same."""
    own = reader(**settings) if settings else READER
    found = own.read(span)
    module = load(MODULE)
    body = traces_protobuf([span])
    assert read_traces(body, own.read) == ([found], [])
    assert module is None or NativeDecoder(own, module)(body) in (([found], []), None)
    return found


def runs(*spans: RawSpan, **settings: Any) -> list[Run]:
    """The runs of these spans, the outermost first, in the order they began."""
    engine = Engine(
        Settings.load(settings), clock=lambda: 0.0, wall=None, reader=reader(**settings)
    )
    engine.receive(spans)
    engine.flush(CloseReason.END_OF_INPUT)
    return sorted(engine.take_final(), key=lambda run: (run.nested, run.start_ns, run.run_id))


def rebuilt(*received: RawSpan | RawLog, **settings: Any) -> list[Run]:
    """The runs of spans and events, the outermost first; the same in any order, and doubled."""
    found: list[list[Run]] = []
    for order in (received, received[::-1], [*received, *received]):
        engine = Engine(
            Settings.load(settings), clock=lambda: 0.0, wall=None, reader=reader(**settings)
        )
        for one in order:
            if isinstance(one, RawLog):
                engine.receive_logs([one])
            else:
                engine.receive([one])
        engine.flush(CloseReason.END_OF_INPUT)
        found.append(
            sorted(engine.take_final(), key=lambda run: (run.nested, run.start_ns, run.run_id))
        )
    assert found[0] == found[1] == found[2]
    return found[0]


def run(*spans: RawSpan, **settings: Any) -> Run:
    found = [run for run in runs(*spans, **settings) if not run.nested]
    assert len(found) == 1, [run.key.agent for run in found]
    return found[0]


def hashed(value: object) -> bytes | None:
    return HASHER.value(value)


def facts(span: RawSpan, kind: Kind, of: type[Facts]) -> Facts:
    """What a span says, after making sure what it is."""
    found = read(span)
    assert found.kind is kind
    assert isinstance(found.facts, of)
    return found.facts


def invocation(span: RawSpan, kind: Kind = Kind.AGENT) -> InvocationFacts:
    return facts(span, kind, InvocationFacts)


def model(span: RawSpan) -> ModelFacts:
    return facts(span, Kind.MODEL, ModelFacts)


def tool(span: RawSpan) -> ToolFacts:
    return facts(span, Kind.TOOL, ToolFacts)


def call(span: RawSpan) -> Call:
    (found,) = tool(span).calls
    return found


def target(span: RawSpan) -> str | None:
    return facts(span, Kind.HANDOFF, HandoffFacts).target


def session(span: RawSpan, **settings: Any) -> str | None:
    found = read(span, **settings).session
    return None if found is None else found.id


def is_nothing(span: RawSpan) -> bool:
    found = read(span)
    return found.kind is Kind.OTHER and found.facts is None


class Asked(dict[str, Any]):
    """Attributes that remember which keys they were asked for."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        super().__init__(attributes)
        self.keys_asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.keys_asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.keys_asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.keys_asked.add(str(key))
        return super().__contains__(key)


def unwanted(raw: RawSpan, own: Reader = READER) -> set[str]:
    """The keys that reading a span asks for although they are not told as wanted."""
    asked = Asked(raw.attributes)
    own.read(replace(raw, attributes=asked))
    return {
        key for key in asked.keys_asked - own.keys.wanted if not key.startswith(own.keys.prefixes)
    }


def without(attributes: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key not in keys}
