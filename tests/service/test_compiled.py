"""The compiled reader says what the decoders in Python say, or leaves the request to them."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from tests.service import payloads
from otel_reliability import conventions
from otel_reliability.assembly.blocks import Block, Blocks
from otel_reliability.assembly.rows import Rows
from otel_reliability.config import AssemblySettings, MappingSettings, Settings, ToolSettings
from otel_reliability.conventions import room
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.reader import Reader
from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import KIND_CLIENT, AgentSpan, Kind, RawSpan, Resource, Session, ToolFacts
from otel_reliability.service import compiled
from otel_reliability.service.answers import Encoding, Signal
from otel_reliability.service.compiled import Compiled
from otel_reliability.service.decoded import Decoder
from otel_reliability.service.ordinary import Ordinary
from otel_reliability.service.refusal import Refused
from otel_reliability.sources import otlp
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.testing import span, traces_protobuf
from tests.assembly.rebuilding import blocks_of, is_apart
from tests.service.test_ordinary import any_span, comparable, web
from tests.sources.recordings import every_recording
from tests.sources.strategies import requests
from tests.sources.test_otlp_fast import request_with, wire

NATIVE = compiled.load()
pytestmark = pytest.mark.skipif(
    NATIVE is None,
    reason="otel-reliability-native is not installed: it needs a C compiler, then `rm .venv/ready && make .venv/ready`",
)
MOST = 400
"""Spans of a recording that are looked at."""
CHANGES = 400
CHAT: dict[str, str | int] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.response.id": "r-1",
    "gen_ai.usage.input_tokens": 900,
    "gen_ai.usage.output_tokens": 20,
    "gen_ai.conversation.id": "talk",
}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "search",
    "gen_ai.tool.call.id": "c-1",
    "gen_ai.tool.call.arguments": '{"id": 7}',
    "gen_ai.tool.call.result": "found",
}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support", "gen_ai.usage.input_tokens": 5}


class Both:
    """The compiled reader and the decoders in Python, on the same settings and with the same key of hashes."""

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        hasher = Hasher(b"key", settings.tools.soft_errors)
        slow, fast = (Reader(settings, conventions.TABLE, hasher) for _ in range(2))
        self._slow, self._settings = slow, settings
        self.compiled = Compiled(NATIVE, settings, fast, Ordinary(settings, fast))

    def read(self, body: bytes) -> list[AgentSpan]:
        """What the decoders in Python say."""
        return list(map(self._slow.read, otlp.decode_traces(body).spans))

    def agree(self, body: bytes) -> Blocks | None:
        """What the compiled reader says of a body, after the decoders in Python have said the same."""
        found = self.compiled.read(body)
        if found is not None:
            batch = otlp.decode_traces(body)
            assert not batch.malformed
            expected = list(map(self._slow.read, batch.spans))
            assert in_order(comparable(list(found))) == in_order(comparable(expected))
            assert in_order(found.rest) == in_order(one for one in found if is_apart(one))
            assert all(block.trace_id == one.trace_id for block in found.blocks for one in block)
        return found


def _value(of: str | int) -> AnyValue:
    return AnyValue(string_value=of) if isinstance(of, str) else AnyValue(int_value=of)


def in_order(spans: Iterable[Any]) -> list[Any]:
    """Spans in any order, in one."""
    return sorted(spans, key=repr)


def held(blocks: Iterable[Block]) -> list[Any]:
    """All that bundles would take over of blocks."""
    return [(block.trace_id, *map(_alike, block.rows()), block.others) for block in blocks]


def _alike(rows: Rows) -> Any:
    return list(rows), rows.shared, rows.remote, rows.span_kind


@every_recording
def test_recordings_are_read_the_same(recording: Path) -> None:
    """Of every recorded framework, span for span, and nothing is left to Python but spans of more keys than fit."""
    both = Both()
    spans = list(islice((one for batch in read_file(recording) for one in batch.spans), MOST))
    few = [one for one in spans if len(one.attributes) <= 128]

    assert len(both.agree(traces_protobuf(few)) or ()) == len(few)
    both.agree(traces_protobuf(spans))


@pytest.mark.parametrize("kind", ["genai", "genai_content", "genai4k", "http"])
def test_what_services_send_is_read_the_same(kind: str) -> None:
    """Requests without end, whose spans differ in numbers, ids and content: each alike."""
    both = Both()
    for body in getattr(payloads, kind)(3):
        found = both.agree(body)
        assert found is not None
        assert len(found) == payloads.SPANS
        assert held(found.blocks) == held(blocks_of(both.read(body)).blocks)


def test_traces_may_be_mixed() -> None:
    """Spans of several traces and services in any order: each trace has its rows, and more blocks where it is large."""
    both, dice = Both(), random.Random(7)
    spans = [one for run in range(30) for one in payloads.Traffic(seed=run).run()]
    spans += [span(at, attributes=CHAT, trace=9) for at in range(1, 1_200)]
    dice.shuffle(spans)
    found = both.agree(traces_protobuf(spans))

    assert found is not None
    assert len(found.blocks) == 30 + 3
    assert max(block.count for block in found.blocks) == 512
    assert sum(len(block.others) for block in found.blocks) == 30


def test_spans_that_are_unlike_stay_whole() -> None:
    """Of another session, scope, origin or service than the first of their trace, or with more to say."""
    other = Resource.of({"service.name": "other"})
    plain, talk = span(1, attributes=CHAT), {**CHAT, "gen_ai.conversation.id": "another"}
    unlike = [
        span(2, attributes=talk),
        span(3, attributes=CHAT, scope="another"),
        span(4, attributes=CHAT, remote=True),
        span(5, attributes=CHAT, kind=KIND_CLIENT),
        span(6, attributes=CHAT, resource=other),
        span(7, attributes=CHAT, trace_state="ot=th:8"),
        span(8, attributes={**CHAT, "reliability.success": True}),
    ]
    found = Both().agree(traces_protobuf([plain, *unlike, span(9, attributes=CHAT)]))

    assert found is not None
    (block,) = found.blocks
    assert [one.span_id for one in block.rows()[0].spans(block.trace_id)] == [plain.span_id, span(9).span_id]
    assert len(block.others) == len(unlike)


@given(st.lists(any_span(), min_size=1, max_size=4))
def test_any_keys_names_and_scopes_are_read_the_same(spans: list[RawSpan]) -> None:
    """Whatever keys, names and scopes meet, also where none is an agent's."""
    body = traces_protobuf([one._replace(span_id=bytes([at + 1] * 8)) for at, one in enumerate(spans)])

    assert Both().agree(body) is not None


@given(requests())
def test_any_request_is_read_the_same(request: ExportTraceServiceRequest) -> None:
    """Sound or not, with every type of value, events, links and states."""
    Both().agree(request.SerializeToString())


VALUES: list[Any] = [
    "", "null", "None", "x", "x" * 255, "x" * 256, "x" * 257, "ä" * 200, "0d27ee01-4866-4a9b-989c-3ecf31ed47aa", "7", 0, 7,
    127, 128, 2**31, 2**63 - 1, -1, 7.0, 7.5, True, False, None, b"bytes", ("stop",), ("tool_calls", "stop"), (), (1, 2),
    '{"a": 1}', "[]", "error", "execute_tool", "final_answer", "(merged tools)",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:24])
@pytest.mark.parametrize("given", [CHAT, TOOL, AGENT], ids=lambda given: given["gen_ai.operation.name"])
@pytest.mark.parametrize("status", [0, 2])
def test_any_value_in_any_place_is_read_the_same(given: dict[str, Any], value: Any, status: int) -> None:
    """A value of another type, length or meaning than it should have, in each attribute of each kind of span."""
    both = Both()
    for key in (*given, "gen_ai.response.finish_reasons", "error.type"):
        one = span(1, attributes={**given, key: value}, status=status, scope="opentelemetry.instrumentation.genai")

        assert both.agree(traces_protobuf([one, one._replace(span_id=b"another1")])) is not None


@pytest.mark.parametrize(
    "settings",
    [
        Settings(tools=ToolSettings(ignore=("search",))),
        Settings(tools=ToolSettings(rename={"se*": "look"}, soft_errors=("fou.d",))),
        Settings(mapping=MappingSettings(agent=("server.port",))),
        Settings(assembly=AssemblySettings(run_key="http.route")),
        Settings(agent_key=("http.route",)),
    ],
    ids=["ignored", "renamed", "mapped", "run key", "agent key"],
)
def test_settings_mean_the_same(settings: Settings) -> None:
    """What users rename, ignore, map and group by."""
    both = Both(settings)
    spans = [span(1, attributes=one) for one in (CHAT, TOOL, AGENT, {**AGENT, "http.route": "/", "server.port": 1})]

    assert len(both.agree(traces_protobuf([*spans, web(9)])) or ()) == 5


@pytest.mark.parametrize(
    "one",
    [
        span(1, name="crewai.workflow", attributes=CHAT),
        span(1, name="support run", attributes={"agent_name": "support"}),
        span(1, name="invoke_agent support"),
        span(1, name="chat model", kind=KIND_CLIENT),
        span(1, attributes=CHAT, trace_state="ot=th:8"),
        span(1, attributes=CHAT, events=[("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "ok"})]),
        span(1, links=[(2, 2)], attributes={"messaging.system": "kafka"}),
        span(1, attributes=CHAT, remote=True),
        span(1, attributes=CHAT, remote=False, start=5, end=3),
        span(1, attributes={f"key {at}": at for at in range(128)}),
    ],
    ids=lambda one: f"{one.name} {len(one.attributes)}",
)
def test_what_is_seldom_is_read_the_same(one: RawSpan) -> None:
    """Names that tell, states, events, links, clocks that ran backwards, as many keys as fit."""
    assert Both().agree(traces_protobuf([one, web(9)])) is not None


@pytest.mark.parametrize(
    "body",
    [
        traces_protobuf([span(1, attributes={f"key {at}": at for at in range(129)})]),
        traces_protobuf([span(1)._replace(span_id=b"short")]),
        traces_protobuf([span(1)._replace(trace_id=bytes(16))]),
        traces_protobuf([span(1)._replace(start_ns=2**63)]),
        request_with(b"\x58\x07"),
        request_with(b"\xfa\x06\x01x"),
        request_with(wire(9, KeyValue(key="k", value=AnyValue(int_value=1)).SerializeToString() + b"\x18\x05")),
        traces_protobuf([span(attributes={"good": 1})]).replace(b"good", b"\xff\xfe\xfd\xfc"),
        traces_protobuf([span(name="good")]).replace(b"good", b"\xff\xfe\xfd\xfc"),
        traces_protobuf([span(attributes=CHAT)]).replace(b"r-1", b"\xff\xfe\xfd"),
        request_with(wire(9, wire(1, b"\xff\xfe") + wire(1, b"key"))),
        request_with(wire(5, b"\xff\xfe"), wire(5, b"name")),
        wire(1, wire(1, wire(1, b"\x0a\x04test\x12\x011"))),
        wire(1, wire(1, b"\x12\x01x") * 2 + wire(2, b"")),
        wire(1, wire(2, wire(1, wire(1, b"a")) * 2)),
        b"\xff\xff",
        b"\x0a\x7f",
    ],
    ids=[
        "129 keys", "short id", "no id", "late", "later type", "later field", "third part", "key", "name", "value", "two keys",
        "two names", "a resource alone", "two resources", "two scopes", "garbage", "cut",
    ],
)  # fmt: skip
def test_what_is_odd_is_left_to_python(body: bytes) -> None:
    """Malformed spans are named there, later schemas understood, undecodable bodies refused."""
    assert Both().agree(body) is None


def test_an_empty_request_has_no_spans() -> None:
    """No bytes are a sound request."""
    assert Both().agree(b"") == []


def test_equal_keys_twice_mean_the_last() -> None:
    """As in a map of protobuf."""
    again = KeyValue(key="a", value=AnyValue(int_value=2)).SerializeToString()

    assert Both().agree(request_with(wire(9, again))) is not None


FIELDS = (
    wire(1, b"t" * 16), wire(1, b"u" * 16), wire(1, b"t" * 15), wire(1, bytes(16)),
    wire(2, b"s" * 8), wire(2, b"r" * 8), wire(2, b""), wire(3, b"a=b"),
    wire(4, b"p" * 8), wire(4, b""), wire(4, bytes(8)), wire(4, b"p" * 7),
    wire(5, b"chat"), wire(5, b"n" * 127), wire(5, b"n" * 128), wire(5, b""),
    b"\x30\x03", b"\x30\x00", b"\x30\x80\x01",
    b"\x39" + (5).to_bytes(8, "little"), b"\x41" + (9).to_bytes(8, "little"), b"\x41" + bytes(8),
    wire(15, b"\x18\x02"), wire(15, b""), b"\x85\x01\x00\x03\x00\x00",
)  # fmt: skip
"""Fields of a span: sound ones, odd ones, broken ones."""
USUAL = (0, 4, 8, 12, 16, 19, 20)
"""What nearly all spans begin with, as encoders write it."""


def test_fields_in_any_order_are_read_the_same() -> None:
    """In the usual order but for one or two, or in any; some missing, some twice; and cut off anywhere."""
    dice, both, read = random.Random(7), Both(), 0
    for at in range(CHANGES):
        fields = [FIELDS[number] for number in USUAL]
        for _ in range(dice.randrange(4)):
            place = dice.randrange(len(fields) + 1)
            fields[place : place + dice.randrange(2)] = [dice.choice(FIELDS)][: dice.randrange(2)]
        if at % 3 == 0:
            dice.shuffle(fields)
        attributes = [
            wire(9, KeyValue(key=key, value=_value(value)).SerializeToString()) for key, value in CHAT.items()
        ]
        one = b"".join(fields + attributes)
        cut = one[: dice.randrange(len(one))] if at % 5 == 0 else one
        try:
            read += both.agree(wire(1, wire(2, wire(2, cut)))) is not None
        except UndecodableBody:
            pytest.fail("the compiled reader took what Python refuses")

    assert CHANGES > read > CHANGES // 5


def test_spans_in_any_turn_are_read_the_same() -> None:
    """What comes next is foreseen by what came; whatever comes instead is read as it is."""
    dice, both = random.Random(7), Both()
    kinds = (CHAT, TOOL, AGENT, {"http.route": "/"}, {**CHAT, "server.port": 443})
    for turn in ((0, 1), (0, 1, 0, 1, 0, 2), (0, 1, 0, 2), (3, 0, 3, 1), (0, 4)):
        spans = [span(number + 1, attributes=kinds[turn[number % len(turn)]]) for number in range(40)]
        assert both.agree(traces_protobuf(spans)) is not None
    spans = [span(number + 1, attributes=dice.choice(kinds)) for number in range(400)]
    assert both.agree(traces_protobuf(spans)) is not None


def changed(body: bytes, dice: random.Random) -> bytes:
    """A body with a few bytes changed, cut out or put in."""
    found = bytearray(body)
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(found) + 1)
        found[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
    return bytes(found)


def test_changed_bytes_never_read_otherwise() -> None:
    """Damaged anywhere, a request is read as Python reads it, or left to it; what neither can read is refused by Python."""
    dice, both, read = random.Random(7), Both(), 0
    spans = [span(1, attributes=CHAT), span(2, 1, attributes=TOOL), span(3, 1, attributes=AGENT), web(4, 1)]
    odd = span(5, 1, events=[("event", {"a": 1})], links=[(2, 2)], trace_state="a=b")
    body = traces_protobuf([*spans, odd])
    for _ in range(CHANGES):
        try:
            read += both.agree(changed(body, dice)) is not None
        except UndecodableBody:
            pytest.fail("the compiled reader took what Python refuses")

    assert CHANGES > read > 0


def test_every_cut_is_noticed() -> None:
    """A request that ends early is never taken for a whole one."""
    both, body = Both(), traces_protobuf([span(1, attributes=CHAT), web(2, 1)])

    assert [at for at in range(1, len(body)) if both.compiled.read(body[:at]) is not None] == []


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes without end are forgotten with all others when they take too much room, and spans are read the same after."""
    monkeypatch.setattr(room.Room.__init__, "__defaults__", (100_000,))
    both, dice = Both(), random.Random(7)
    for at in range(200):
        values = {**CHAT, f"key {dice.random()}": at, "gen_ai.request.model": f"model {at}"}

        assert both.agree(traces_protobuf([span(1, attributes=values, scope=f"scope {at % 90}"), span(2)])) is not None
    assert len(both.compiled._layouts) < 90


def at_hand(both: Both, key: str) -> list[tuple[bytes, Any]]:
    """The shapes that are found first, of spans with this key."""
    (layout,) = [one for of in both.compiled._layouts.values() for keys, one in of.items() if key.encode() in keys]
    (slots,) = cast("list[list[Any]]", [one for one in gc.get_referents(layout) if type(one) is list])
    return [slot for slot in slots if slot is not None]


def test_shapes_do_not_drive_each_other_out() -> None:
    """Two that come by turns are both at hand, whichever they are; and so are many that differ in their last letters only."""
    both = Both()
    for at in range(200):
        kinds = [{**CHAT, f"key {at}": at, "gen_ai.request.model": f"model {at} {number}"} for number in range(2)]
        assert both.agree(traces_protobuf([span(number + 1, attributes=kinds[number % 2]) for number in range(4)]))
        assert len(at_hand(both, f"key {at}")) == 2
    tools = [{**TOOL, "gen_ai.tool.name": f"find_{letter}"} for letter in "abcdefghijkl"]
    assert both.agree(traces_protobuf([span(number + 1, attributes=one) for number, one in enumerate(tools)]))
    assert len(at_hand(both, "gen_ai.tool.name")) > 6


def test_shapes_in_a_row_are_let_go_on_a_small_stack() -> None:
    """Each may hold the next, thousands of them: threads of hosts have stacks of 128 KiB."""
    both = Both()
    shapes = [span(at % 500 + 1, attributes={f"key {at}": at}) for at in range(8_000)]
    for spans in (shapes, shapes[::-1]):
        for at in range(0, len(spans), 500):
            assert both.compiled.read(traces_protobuf(spans[at : at + 500])) is not None
    before = threading.stack_size(128 * 1024)
    try:
        thread = threading.Thread(target=both.compiled._forget)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not both.compiled._layouts


@pytest.mark.parametrize("row", [None, (), ("m",)])
@pytest.mark.parametrize("facts", [None, (), ToolFacts(())])
@pytest.mark.parametrize("what", range(5))
def test_what_was_learnt_is_looked_at(monkeypatch: pytest.MonkeyPatch, what: int, facts: Any, row: Any) -> None:
    """Where it has not the parts that spans are filled from, they are told by the conventions, one by one."""
    if what == NATIVE.PLAIN and row is None:
        row = ("m",)

    def learnt(*_: object) -> tuple[Any, ...]:
        return what, Kind.MODEL, False, facts, row

    monkeypatch.setattr(Compiled, "_learnt", learnt)
    assert Both().agree(traces_protobuf([span(1, attributes=CHAT), span(2, attributes=CHAT)])) is not None


def test_other_named_tuples_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their fields are filled by their places."""
    monkeypatch.setattr(compiled, "AgentSpan", Session)
    with pytest.raises(TypeError, match="other fields"):
        Both()


def test_threads_do_not_mix_what_they_read() -> None:
    """Receivers read at once; each gets the sessions, agents and ids of its own request."""
    both = Both()
    bodies = [body for seed in range(4) for body in payloads.Traffic(seed=seed, content=True).requests(2, 64)]
    expected = [both.compiled.read(body) for body in bodies]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(both.compiled.read, bodies * 20)) == expected * 20


def test_a_service_reads_by_it_and_says_what_python_says() -> None:
    """The decoder of a service takes it where it is there; malformed spans are told as ever."""
    settings = Settings(hash_key="00" * 16)
    fast, slow = (
        Decoder(settings, Reader(settings, conventions.TABLE), compiled=compiled) for compiled in (True, False)
    )
    good, bad = payloads.genai(1)[0], traces_protobuf([span(1)._replace(span_id=b"short"), span(2)])

    for body in (good, bad):
        told = [one(Signal.TRACES, Encoding.PROTOBUF, body) for one in (fast, slow)]
        assert in_order(told[0].spans) == in_order(told[1].spans)
        assert told[0]._replace(spans=()) == told[1]._replace(spans=())
    with pytest.raises(Refused):
        fast(Signal.TRACES, Encoding.PROTOBUF, b"\xff\xff")


def test_places_keep_their_sender() -> None:
    """Spans that nobody recognises say whose they are, and share it."""
    sender = Resource.of({"service.name": "web"})
    found = Both().agree(traces_protobuf([web(1, resource=sender), web(2, 1, resource=sender)]))

    assert found is not None
    assert [one.kind for one in found] == [Kind.OTHER, Kind.OTHER]
    assert found[0].resource is found[1].resource
    assert found[0].trace_id is found[1].trace_id


@pytest.mark.parametrize(
    "broken", [((), (0,)), (("a",), (1,)), (("a",), (), (9, *(-1,) * 7)), (("a",) * 129,), (("x" * 70_000,),)]
)
def test_layouts_that_cannot_be_are_refused(broken: tuple[Any, ...]) -> None:
    """A place outside its keys would read outside its memory."""
    with pytest.raises(ValueError, match=r"layout of|places of"):
        NATIVE.Layout(*broken)
