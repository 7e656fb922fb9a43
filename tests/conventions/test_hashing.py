"""Arguments and results."""

from __future__ import annotations

import json
import random
import time
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otel_reliability.conventions.base import Own, itself
from otel_reliability.conventions.hashing import (
    DIGEST_SIZE,
    MAX_REMEMBERED,
    Hasher,
    canonical,
    unwrapped,
)
from otel_reliability.conventions.masks import REDACTED, lacks_middle
from otel_reliability.model.span import Call, ToolFacts
from otel_reliability.model.tools import READS_ONLY
from otel_reliability.sources.otlp_protobuf import read_traces
from otel_reliability.testing import span
from tests.conventions.reading import HASHER, call, hashed, reader
from tests.otlp import traces_protobuf

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4)
NOTE = "please be so kind and send this to my wife at home"


def respelled(value: Any, rng: random.Random) -> Any:
    """The same value with keys in another order, tuples for lists, whole floats for integers."""
    if isinstance(value, dict):
        pairs = list(cast("dict[str, Any]", value).items())
        rng.shuffle(pairs)
        return {key: respelled(item, rng) for key, item in pairs}
    if isinstance(value, list):
        return tuple(respelled(item, rng) for item in cast("list[Any]", value))
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(ARGUMENTS, st.randoms(use_true_random=False))
def test_equal_arguments_have_equal_hashes(value: dict[str, Any], rng: random.Random) -> None:
    again = json.dumps(value, indent=1, ensure_ascii=rng.random() < 0.5)

    assert hashed(value) == hashed(again) == hashed(respelled(value, rng))


WORDS = st.sampled_from(
    ["<object at 0x7f>", "<redacted>", "kwargs", "args", "\\", '"', "é", "\ud800", "a b c d" * 9]
)
FLAT = st.dictionaries(WORDS | st.text(max_size=4), SCALARS | WORDS | st.just(2**130), max_size=4)


@given(FLAT | ARGUMENTS, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")]))
def test_json_text_has_the_hash_of_what_it_means(
    value: dict[str, Any], escaped: bool, marks: tuple[str, str]
) -> None:
    text = json.dumps(value, ensure_ascii=escaped, separators=marks)
    _, meant = unwrapped(text)
    assume(
        meant not in (None, "")
    )  # null and "" are known where they stand in a text, and absent as values

    assert hashed(text) == hashed(meant)


@given(VALUES, VALUES)
def test_hashes_are_equal_only_of_equal_values(one: object, two: object) -> None:
    assert (hashed([one]) == hashed([two])) == (canonical([one]) == canonical([two]))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {}),
        ([], {}),
        ([1, 2], [2, 1]),
        ("a", ["a"]),
        ({"a": 1.5}, {"a": 1}),
        ({"a": 2**130}, {"a": 2**130 + 1}),
    ],
)
def test_different_arguments_differ(one: object, two: object) -> None:
    assert hashed(one) != hashed(two)


@pytest.mark.parametrize(
    "wrapped",
    [
        '{"args": [], "kwargs": {"q": 1}}',
        '{"args": (), "kwargs": {"q": 1}}',
        {"kwargs": {"q": 1}},
        {"args": None, "kwargs": {"q": 1}, "sanitize_inputs_outputs": True},
        "{'q': 1}",
    ],
)
def test_q41_wrappers_and_literals_are_seen_through(wrapped: object) -> None:
    """What smolagents, Langfuse, DSPy and LlamaIndex put around arguments, and Python's way to
    write them.
    """
    assert hashed(wrapped) == hashed({"q": 1})


def test_wrappers_with_arguments_by_position_keep_them() -> None:
    assert hashed({"args": [1], "kwargs": {}}) != hashed({"args": [2], "kwargs": {}})
    assert hashed({"kwargs": {"q": 1}, "limit": 5}) != hashed({"q": 1})


def test_q41_memory_addresses_are_no_difference() -> None:
    """`<Context object at 0x7f…>` is another text in every attempt at the same call."""
    first, second = ({"ctx": f"<Context object at 0x7f{n:010x}>", "q": 1} for n in (1, 2))

    assert hashed(first) == hashed(second)
    assert hashed(str(first)) == hashed(str(second))


@pytest.mark.parametrize("mark", sorted(REDACTED))
def test_what_is_redacted_is_unknown(mark: str) -> None:
    """As a whole, or in any part: two hidden values may differ, so they must not look the same."""
    for value in (mark, {"q": mark, "n": 1}, [{"deep": mark}], json.dumps({"q": mark})):
        assert HASHER.arguments(value) == (None, None)
        assert HASHER.value(value) is None


@pytest.mark.parametrize("value", [None, ""])
def test_what_is_absent_is_unknown(value: object) -> None:
    assert HASHER.arguments(value) == (None, None)
    assert HASHER.value(value) is None


@given(VALUES)
def test_a_hash_depends_on_its_key_and_tells_no_text(value: object) -> None:
    own = Hasher(b"one").value([value])
    other = Hasher(b"two").value([value])

    assert own is not None
    assert (len(own), own == other) == (DIGEST_SIZE, False)
    assert own == Hasher(b"one").value([value])


def test_of_equal_texts_only_a_hash_is_remembered() -> None:
    own = reader()
    secret = "the secret of a user"
    told = (
        f'[{{"parts": [{{"type": "tool_call", "name": "search", "arguments": {{"q": '
        f'"{secret}"}}}}]}}]'
    )
    facts = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.call.arguments": secret,
        "gen_ai.tool.call.result": secret,
    }
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": told,
        "gen_ai.system_instructions": secret,
    }
    body = traces_protobuf([span(1, attributes=facts), span(2, attributes=chat)])
    first, second = (read_traces(body, own.read)[0] for _ in range(2))

    assert first == second
    assert first[0].facts == ToolFacts(
        (Call("search", None, hashed(secret), False, hashed(secret), hashed(secret)),)
    )
    assert len(own.hasher.known) == 4  # of arguments, of a result, of a prompt, of messages
    assert secret not in repr(own.hasher.known)


def test_so_many_values_are_remembered_and_each_is_read_once() -> None:
    reads: list[str] = []

    def upper(text: str) -> str:
        reads.append(text)
        return text.upper()

    one = Own(upper, ("a key",), once=True)
    hasher = Hasher(b"key")
    texts = [f"text {number}" for number in range(2 * MAX_REMEMBERED + 1)]
    for text in texts:
        again = [hasher.once(one, (text,), itself) for _ in range(2)]
        assert again == [text.upper()] * 2
        assert len(hasher.known) <= MAX_REMEMBERED

    assert reads == texts


def test_equal_values_are_remembered_for_each_reader_and_each_decoding() -> None:
    hasher = Hasher(b"key")
    upper = Own(str.upper, ("a key",), once=True)
    lower = Own(str.lower, ("a key",), once=True)

    assert hasher.once(upper, ("Text",), itself) == "TEXT"
    assert hasher.once(lower, ("Text",), itself) == "text"
    assert hasher.once(upper, ("Text",), lambda text: text[::-1]) == "TXET"


def test_equal_numbers_of_different_types_are_read_apart() -> None:
    hasher = Hasher(b"key")
    shown = Own(repr, ("a key",), once=True)

    assert [hasher.once(shown, (one,), itself) for one in (1, 1.0, True)] == ["1", "1.0", "True"]


def test_free_text_is_left_out_of_effects() -> None:
    """Texts of more than 40 characters with three spaces or more, at any depth; the arguments
    themselves keep them.
    """
    kind = {"id": 1, "note": NOTE, "deep": [{"note": NOTE}, NOTE]}
    other = {**kind, "note": NOTE.upper()}

    assert (
        HASHER.arguments(kind)[1] == HASHER.arguments(other)[1] == hashed('{"id": 1, "deep": [{}]}')
    )
    assert HASHER.arguments(kind)[0] != HASHER.arguments(other)[0]
    assert HASHER.arguments(NOTE)[1] == HASHER.arguments(NOTE.upper())[1]


def test_argument_of_the_user_names_what_a_call_changes() -> None:
    """Of tools whose name matches; where it is absent or redacted, all arguments count."""
    hasher = Hasher(b"key", effect_keys={"set_*": "order"})

    def effect(name: str, **arguments: object) -> bytes | None:
        return hasher.call(name, None, arguments, failed=False).effect

    assert effect("set_status", order=7, to="paid") == effect("set_status", order=7, to="sent")
    assert effect("set_status", order=7, to="paid") != effect("set_status", order=8, to="paid")
    assert effect("set_status", to="paid") != effect("set_status", to="sent")
    assert effect("book", order=7, to="paid") != effect("book", order=7, to="sent")


def test_short_and_dense_texts_are_no_free_text() -> None:
    for text in (
        "x" * 60,
        "12 Main Street, Springfield",
        "one two three four five six seven eight"[:40],
    ):
        assert HASHER.arguments({"to": text})[1] == hashed({"to": text})


def test_soft_errors_are_failures_to_the_user() -> None:
    hasher = Hasher(b"k", ["^Error:", '"error":'])

    assert hasher.call("t", None, None, "Error: no such order", failed=False).failed
    assert hasher.call("t", None, None, {"error": "no such order"}, failed=False).failed
    assert not hasher.call("t", None, None, "no Error: fine", failed=False).failed
    assert not hasher.call("t", None, None, None, failed=False).failed
    assert hasher.call("t", None, None, "fine", failed=True).failed


def test_deep_and_strange_values_have_a_hash() -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]

    assert hashed({"a": {3, 1, 2}}) == hashed({"a": [1, 2, 3]})
    assert hashed({1: b"\xff"}) == hashed({"1": "ff"})
    assert hashed([float("nan")]) == hashed([float("nan")])
    assert hashed([float("inf")]) != hashed([float("-inf")])
    assert hashed(deep) == hashed([deep])
    assert hashed(["\ud800"]) is not None


def test_an_identifier_is_printable() -> None:
    assert HASHER.text("order-7") == HASHER.text("order-7") != HASHER.text("order-8")
    assert len(HASHER.text("order-7")) == 2 * DIGEST_SIZE


@pytest.mark.parametrize(
    "arguments",
    [
        '{"command": "ls -l"}',
        {"command": "cd src && cat a.py"},
        {"cmd": ["bash", "-lc", "grep x a | head"]},
        {"command": ["ls", "-l", "a b"]},
        "pwd",
    ],
)
def test_a_shell_command_that_only_reads_has_no_effect(arguments: object) -> None:
    hasher = Hasher(b"key")
    assert hasher.call("Bash", None, arguments, failed=False).effect == READS_ONLY
    assert hasher.call("run_shell_command", None, {"command": "make"}, failed=False).effect not in {
        READS_ONLY,
        None,
    }
    assert hasher.call("deploy", None, arguments, failed=False).effect not in {READS_ONLY, None}
    assert hasher.call("bash", None, None, failed=False).effect is None


def test_hashes_without_a_key_die_with_the_process() -> None:
    assert Hasher().value("x") != Hasher().value("x")


CUT = '{"path": "/repo/app.py", "content": "# Copyright 2026 Example\\nimport os\\nimpo'


@pytest.mark.parametrize(
    "value",
    [
        CUT,
        '["a", "b',
        '{"a": [1, 2',
        '"a text without its end',
        "The output was long ... [truncated]",
        "[Filtered]",
        "<masked>",
        "[Scrubbed due to 'password']",
        "****",
        "••••••",
        "XXXXXXXX",
        "xxxx",
        "<hidden>",
        '{"query": "****"}',
        '{"query": "[Filtered]", "limit": "<masked>"}',
        '{"query": "\\u2022\\u2022\\u2022"}',
        "*****…",
        "Content hidden",
        "REMOVED_BY_POLICY",
        '{"redacted": true}',
        '{"type": "redacted"}',
        '{"_truncated": true, "preview": "ab"}',
        '{"truncated": true, "original_type": "dict", "preview": "[1, 2"}',
        '{"query": "[Scrubbed due to \'secret\']"}',
        '{"to": "<EMAIL_ADDRESS>", "limit": 5}',
        "[object Object]",
        '{"query": "[object Object]"}',
        "undefined",
        "N/A",
        "...",
        "<not specified>",
        "<unserializable>",
        '{"path": "a.md", "content": "# Copyright... [truncated 9000 chars]"}',
        '{"content": "import os… (9000 more characters)"}',
        '{"content": ["<500 chars omitted>"]}',
        '{"content": "# Notes\\n[Output Truncated]"}',
        "import os ...[+9000 more bytes]",
    ],
)
def test_what_was_cut_or_masked_is_unknown(value: str) -> None:
    assert HASHER.value(value) is None
    assert HASHER.arguments(value) == (None, None)
    read_call = call(
        span(
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "write",
                "gen_ai.tool.call.arguments": value,
                "gen_ai.tool.call.result": value,
            }
        )
    )
    assert (read_call.arguments, read_call.result) == (None, None)


@pytest.mark.parametrize(
    "value",
    [
        "[1] the first source [2] the second",
        '{"a": 1}\n{"a": 2}',
        "*",
        "--",
        "unmasked text of a letter",
        '{"visibility": "hidden"}',
        '{"redacted": true, "id": 7}',
        '{"type": "person"}',
        '{"pattern": "**/*.py"}',
        '{"note": "say *** twice"}',
        "the filtered list",
        "[print('no')]",
        "[object code]",
        '{"query": "undefined"}',
        "not available",
    ],
)
def test_what_only_looks_like_it_is_known(value: str) -> None:
    assert HASHER.value(value) is not None


@pytest.mark.parametrize(
    "mark",
    [
        "… (truncated 500 chars) …",
        "…500 chars truncated…",
        "…12 tokens truncated…",
        "\n[... Observation truncated due to length ...]\n",
        "\n... [4,211 characters omitted] ...\n",
        "\n… 12 characters omitted; full text in trajectory 7 …\n",
        "\n[... budgeted: 700 chars truncated ...]\n",
        "\n... 12 lines omitted ...\n",
        "\n[... +851 chars truncated]\n",
    ],
)
def test_arguments_without_their_middle_are_unknown_and_results_differ(mark: str) -> None:
    content = "import os" + mark + "main()\n" * 20
    for value in (content, {"content": content}, json.dumps({"content": content})):
        assert HASHER.arguments(value) == (None, None)
    assert HASHER.value(content) != HASHER.value(content.replace("os", "re"))


@pytest.mark.parametrize(
    "text",
    [
        "Three rows were omitted. The list (2 items) was truncated.",
        "... the rest is omitted for brevity ...",
        'def f(text): return text[:500] + "... [truncated]" if len(text) > 500 else text',
    ],
)
def test_arguments_that_tell_of_cuts_are_known(text: str) -> None:
    assert HASHER.arguments({"text": text + " It goes on like this for long." * 5})[0] is not None


def test_a_text_of_exactly_a_known_limit_is_unknown() -> None:
    assert HASHER.arguments("a" * 1024) == (None, None)
    assert HASHER.arguments("a" * 1023) != (None, None)
    assert HASHER.arguments(json.dumps({"a": "a" * (1024 - 9)})) != (None, None)


@pytest.mark.parametrize(
    "mask",
    [
        *("[REDACTED_SSN]", "[EMAIL_1]", "{PHONE}", "<PERSON_2>", "{{EMAIL_ADDRESS}}", "[NAME]"),
        *("[PII]", "<API_KEY>", "[SECRET_1]", "{{PASSWORD}}"),
    ],
)
def test_masks_of_personal_data_in_any_brackets(mask: str) -> None:
    hasher = Hasher(b"key")
    assert hasher.arguments(json.dumps({"to": mask, "copy": True})) == (None, None)
    assert hasher.arguments(mask) == (None, None)


@pytest.mark.parametrize("mask", ["SCRUBBED", "[TRUNCATED]", "<truncated>"])
def test_words_that_stand_for_a_whole_value(mask: str) -> None:
    assert Hasher(b"key").arguments(mask) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        *("[Name]", "<name>Ada</name>", "{email}", "NAME", "[1, 2]"),
        *("why is it truncated?", "Sum it up (10 lines)", "one more byte"),
    ],
)
def test_no_masks(text: str) -> None:
    assert Hasher(b"key").arguments(json.dumps({"to": text}))[0] is not None


@pytest.mark.parametrize("part", ["...1", "…", "... a", "...a a a ", "[1", "[....1"])
def test_a_text_that_looks_cut_everywhere_takes_no_time(part: str) -> None:
    """16 KiB took six seconds where a number could be as long as the text."""
    text = part * (16_384 // len(part)) + " omitted"
    began = time.process_time()
    assert not lacks_middle(text)
    assert time.process_time() - began < 0.5
