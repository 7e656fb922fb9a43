"""Bytes in, agent spans out: the decoder in Python and the native one, against the full schema and
each other.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_reliability import conventions
from otel_reliability.config import AssemblySettings, MappingSettings, Settings, ToolSettings
from otel_reliability.conventions.adapters.genai import OPERATION
from otel_reliability.conventions.hashing import RULES, WRAPPER, canonical, unwrapped
from otel_reliability.conventions.keys import Keys
from otel_reliability.conventions.masks import REDACTED
from otel_reliability.conventions.reader import Reader
from otel_reliability.errors import UndecodableBody
from otel_reliability.model.span import KIND_CONSUMER, KIND_SERVER, AgentSpan, Kind, RawSpan
from otel_reliability.service.native_decoder import MODULE, NativeDecoder, load
from otel_reliability.sources.batch import Malformed
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.sources.otlp_protobuf import read_traces
from otel_reliability.testing import span, span_id
from tests.otlp import traces_protobuf
from tests.service.running import run_of
from tests.shared import each_file
from tests.sources import full_schema
from tests.sources.strategies import requests, wire

Found: TypeAlias = "tuple[list[AgentSpan], list[Malformed]]"
MODULE_OF_NATIVE = load(MODULE)
NATIVE = pytest.param(
    "native",
    marks=pytest.mark.skipif(
        MODULE_OF_NATIVE is None, reason="otel-reliability-native is not installed"
    ),
)
both = pytest.mark.parametrize("decoder", ["python", NATIVE])
native_only = pytest.mark.skipif(
    MODULE_OF_NATIVE is None, reason="otel-reliability-native is not installed"
)
KEY = b"the key of the tests"
WEB = {"http.request.method": "GET", "http.route": "/orders/{id}", "server.port": 443}


def reader(settings: Settings | None = None) -> Reader:
    return Reader(replace(settings or Settings(), hash_key=KEY.hex()), conventions.TABLE)


READER = reader()
BY_NATIVE = None if MODULE_OF_NATIVE is None else NativeDecoder(READER, MODULE_OF_NATIVE)


def in_python(body: bytes, own: Reader = READER) -> Found:
    return read_traces(body, own.read)


def in_full(body: bytes, own: Reader = READER) -> Found:
    batch = full_schema.decode(body)
    return [own.read(one) for one in batch.spans], batch.malformed


def by(decoder: str) -> Callable[[bytes], Found]:
    """What a service does: the native decoder, and Python where that leaves a body to it."""
    if decoder == "python" or BY_NATIVE is None:
        return in_python
    own = BY_NATIVE
    return lambda body: own(body) or in_python(body)


def web(number: int, parent: int | None = None, **facts: Any) -> RawSpan:
    common: dict[str, Any] = {"attributes": WEB, "name": "GET /orders/{id}", "kind": KIND_SERVER}
    return span(number, parent, **{**common, **facts})


SELDOM = [
    web(1, attributes={**WEB, "session.id": "7"}),
    web(1, attributes={**WEB, "gen_ai.conversation.id": 7, "session.id": "8"}),
    web(1, attributes={**WEB, "gen_ai.conversation.id": "null", "session.id": "8"}),
    web(1, attributes={**WEB, "gen_ai.conversation.id": "[REDACTED]", "session.id": "8"}),
    web(1, attributes={**WEB, "reliability.task.id": "7", "reliability.run.confidence": 1.7}),
    web(
        1, attributes={"evaluations.0.evaluation.name": "ok", "evaluations.0.evaluation.score": 1.0}
    ),
    web(
        1,
        events=[
            (
                "gen_ai.evaluation.result",
                {"gen_ai.evaluation.name": "ok", "gen_ai.evaluation.score.value": 1},
            )
        ],
    ),
    web(1, events=[("exception", {"exception.type": "E", "ключ": 1})]),
    web(1, trace_state="ot=th:8"),
    replace(web(1, links=[(2, 2)]), span_kind=KIND_CONSUMER),
    web(1, name="é" * 300, scope="@arizeai/openinference-instrumentation-langchain"),
    span(1, name="execute_tool search", status=2),
    span(1, name="crewai.workflow"),
    span(1, name="support run", attributes={"agent_name": "support"}),
    span(
        1,
        attributes={
            "llm.request.type": "chat",
            **{f"gen_ai.completion.0.tool_calls.{n}.name": f"tool-{n}" for n in range(100)},
        },
    ),
    span(
        1, scope="langsmith", attributes={"langsmith.span.kind": "tool"}, events=[("exception", {})]
    ),
    span(
        1,
        scope="strands.telemetry.tracer",
        attributes={OPERATION: "execute_tool", "gen_ai.tool.name": "search"},
        events=[
            ("gen_ai.tool.message", {"content": '{"q": 1}', "id": "c-1"}),
            ("gen_ai.choice", {"message": "found"}),
        ],
    ),
    *(
        span(
            1,
            attributes={
                OPERATION: "execute_tool",
                "gen_ai.tool.name": "f",
                "gen_ai.tool.call.arguments": given,
            },
        )
        for given in (
            None,
            "",
            "{}",
            '{"b": 2.5, "a": 20.0}',
            '{"a": "x"} ',
            '{"a": [1, {"c": null, "b": true}]}',
            7,
            ["a"],
            '{"kwargs": {"a": 1}}',
            '{"a": 1, "a": 2}',
            "__REDACTED__",
            '{"a": "\\u00e9 \\n"}',
            "x" * 5_000,
            '{"a": "please be so kind and send this to my wife at home"}',
            '{"a": 1e3}',
            "{'a': 1}",
            "\ud7ff",
        )
    ),
]


@both
@pytest.mark.parametrize(
    "one",
    SELDOM,
    ids=lambda one: f"{one.name[:20]} {' '.join(map(str, one.attributes.values()))[:40]}",
)
def test_every_kind_of_span_is_read_as_by_the_full_schema(decoder: str, one: RawSpan) -> None:
    backwards = replace(one, span_id=span_id(90), end_ns=one.start_ns - 1)
    body = traces_protobuf([*run_of(), web(9), one, backwards])

    assert by(decoder)(body) == by(decoder)(body) == in_full(body)


def of_each_shape(spans: Iterable[RawSpan], most: int) -> Iterator[RawSpan]:
    """The first spans of each shape: the later ones differ from them in values only."""
    found = Counter[object]()
    for one in spans:
        word = one.name.partition(" ")[0]
        shape = one.scope, one.span_kind, one.status, word, frozenset(one.attributes)
        events = frozenset(event.name for event in one.events)
        found[shape, events] += 1
        if found[shape, events] <= most:
            yield one


@pytest.mark.parametrize("recording", each_file("corpora/*/*.jsonl.gz"))
def test_recordings_are_read_as_by_the_full_schema(recording: Path) -> None:
    """By both decoders, where the native one is installed: of the first 300 spans six of each
    shape, fifty together, and one of seven alone.
    """
    read = (one for batch in read_file(recording) for one in batch.spans)
    spans = list(of_each_shape(itertools.islice(read, 300), 6))
    together = [spans[at : at + 50] for at in range(0, len(spans), 50)]
    for request in (*together, *([one] for one in spans[::7])):
        body = traces_protobuf(request)
        meant = in_full(body)
        assert by("python")(body) == meant
        assert by("native")(body) == meant


@both
@given(request=requests())
def test_any_request_is_read_as_by_the_full_schema(
    decoder: str, request: ExportTraceServiceRequest
) -> None:
    body = request.SerializeToString()

    assert repr(by(decoder)(body)) == repr(in_full(body))


KEYS = sorted(Keys(conventions.TABLE, ()).wanted | {"session.id", "reliability.trial", "metadata"})
WORDS = [
    "agent",
    "tool",
    "AGENT",
    "TOOL",
    "LLM",
    "CHAIN",
    "chat",
    "execute_tool",
    "invoke_agent",
    "ai.toolCall",
    "workflow",
    "7",
    "x",
    '{"a": 1}',
    '{"thread_id": "t", "lc_agent_name": "x"}',
    "stop",
    "",
    7,
    True,
    ("tool_calls",),
    None,
    2.0,
    "\ud7ff",
]
NAMES = [
    "GET /",
    "execute_tool search",
    "chat gpt",
    "x run",
    "crewai.workflow",
    "claude_code.tool",
    "a.tool",
    "x.call_tool",
]
SCOPES = ["test", "asgi", *(scope for one in conventions.TABLE for scope in one.scopes)]
SPANS = st.builds(
    span,
    st.just(1),
    name=st.sampled_from(NAMES),
    attributes=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS), max_size=5),
    kind=st.integers(0, 5),
    scope=st.sampled_from(SCOPES),
    status=st.integers(0, 2),
)


@both
@given(spans=st.lists(SPANS, min_size=1, max_size=4))
def test_any_keys_names_and_scopes_are_read_as_by_the_full_schema(
    decoder: str, spans: list[RawSpan]
) -> None:
    """What an answer of a convention depends on is known: spans that share it are the same in all
    else.
    """
    body = traces_protobuf(
        [replace(one, span_id=bytes([at + 1] * 8)) for at, one in enumerate(spans)]
    )
    full = full_schema.decode(body)

    assert by(decoder)(body) == ([reader().read(one) for one in full.spans], full.malformed)


@both
def test_a_request_of_no_agent_is_read_for_its_parents(decoder: str) -> None:
    spans = [
        web(1),
        web(2, 1, status=2, start=5, end=3),
        web(3, 2, remote=True),
        replace(web(4, 3), span_id=b"short"),
    ]
    found, malformed = by(decoder)(traces_protobuf(spans))

    assert [(one.kind, one.facts, one.failed) for one in found] == [
        (Kind.OTHER, None, failed) for failed in (False, True, False)
    ]
    assert [problem.detail for problem in malformed] == ["the span id has 5 bytes, not 8"]


@native_only
@given(st.data())
def test_changed_bytes_are_read_as_in_python_or_left_to_it(data: st.DataObject) -> None:
    assert BY_NATIVE is not None
    body = bytearray(traces_protobuf([*run_of(), *data.draw(st.permutations(SELDOM))[:2]]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    found = BY_NATIVE(bytes(body))
    if found is not None:
        assert repr(found) == repr(in_python(bytes(body)))


@native_only
@pytest.mark.parametrize(
    "settings",
    [
        Settings(tools=ToolSettings(ignore=("sea*",), rename={"bo*": "b"}, soft_errors=("no",))),
        Settings(mapping=MappingSettings(agent=("gen_ai.agent.name",), session=("user.id",))),
        Settings(agent_key=("service.version",), assembly=AssemblySettings(run_key="user.id")),
    ],
)
def test_settings_mean_the_same(settings: Settings) -> None:
    own = reader(settings)
    body = traces_protobuf([*run_of(), web(8, attributes={**WEB, "user.id": "u"}), *SELDOM])

    assert NativeDecoder(own, MODULE_OF_NATIVE)(body) == in_python(body, own)


@native_only
@pytest.mark.parametrize(
    "large", [bytes([18, 0]) * 700_000, bytes([10, 0]) * 700_000], ids=["spans", "scopes"]
)
def test_a_body_made_to_explode_is_left_to_python(large: bytes) -> None:
    assert BY_NATIVE is not None
    body = wire(1, large) if large[0] == 18 else large

    assert BY_NATIVE(body) is None
    with pytest.raises(UndecodableBody):
        in_python(body)


@native_only
def test_what_is_remembered_is_forgotten_with_the_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that invents keys fills nothing: all is forgotten together, and read
    again the same.
    """
    monkeypatch.setattr("otel_reliability.conventions.reader.MAX_MEMORY", 100_000)
    own = reader()
    decode = NativeDecoder(own, MODULE_OF_NATIVE)
    bodies = [
        traces_protobuf([web(1, attributes={f"key-{number}": 1}), *run_of()])
        for number in range(100)
    ]

    assert [decode(body) for body in bodies] == [in_python(body) for body in bodies]
    assert own.generation > 1


@native_only
def test_threads_do_not_mix_what_they_read() -> None:
    own = NativeDecoder(reader(), MODULE_OF_NATIVE)
    bodies = [
        traces_protobuf(run_of(number, (f"tool-{number}",), f"agent-{number}"))
        for number in range(1, 9)
    ]
    expected = [in_python(body) for body in bodies]
    wrong: list[int] = []

    def decode(number: int) -> None:
        wrong.extend(number for _ in range(200) if own(bodies[number]) != expected[number])

    threads = [threading.Thread(target=decode, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(
        [
            *REDACTED,
            *RULES.unusual,
            "a " * RULES.free_text_spaces + "b" * (RULES.free_text_length - 1),
            "a " * RULES.free_text_spaces + "b" * RULES.free_text_length,
            "\\",
            '"',
            "é",
            "\x7f",
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(sorted(WRAPPER)), inner, max_size=4)
    ),
    max_leaves=10,
)


@native_only
@given(
    JSON,
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]),
    st.text(max_size=2),
)
@example({"a": 0.1, "b": 1e22, "c": -0.0, "d": 20.0}, False, (",", ":"), "")
@example([], False, (",", ":"), "\x00")
def test_canonical_json_is_that_of_python(
    value: Any, escaped: bool, marks: tuple[str, str], more: str
) -> None:
    text = json.dumps(value, ensure_ascii=escaped, separators=marks) + more
    for one, is_arguments in itertools.product([text, text[:-1]], [True, False]):
        try:
            found = MODULE_OF_NATIVE.canonical_json(one, RULES, is_arguments)
        except UnicodeEncodeError:  # half a character: no request holds one
            continue
        assert found is None or found == canonical(unwrapped(one)[1])


@native_only
def test_native_hashing_follows_the_rules_of_python() -> None:
    """Rules that change in Python change there: it has none of its own."""
    plain = '{"a":1,"b":"two words and more"}'
    others = [
        replace(RULES, wrapped="a\x62"),
        replace(RULES, unusual=("words", *RULES.unusual)),
        replace(RULES, max_text=len(plain) - 1),
        replace(RULES, free_text_length=10),
    ]

    assert MODULE_OF_NATIVE.canonical_json(plain, RULES) == plain
    for rules in others[1:]:
        assert MODULE_OF_NATIVE.canonical_json(plain, rules) is None
    assert MODULE_OF_NATIVE.canonical_json('{"ab":1}', others[0]) is None
    for mark in REDACTED:
        assert any(unusual in mark for unusual in RULES.unusual)


@both
@pytest.mark.parametrize("result", ["Error: no such order was found", "Timeout while reading it"])
def test_a_result_that_begins_like_an_error_is_counted_by_either_decoder(
    decoder: str, result: str
) -> None:
    reader = Reader(Settings(), conventions.TABLE)
    attributes = {OPERATION: "execute_tool", "gen_ai.tool.name": "s"}
    attributes["gen_ai.tool.call.result"] = result
    body = traces_protobuf([span(1, attributes=attributes)])
    if decoder == "python":
        read_traces(body, reader.read)
    else:
        NativeDecoder(reader, MODULE_OF_NATIVE)(body)

    assert sum(reader.hasher.uncaught_errors.values()) == 1
