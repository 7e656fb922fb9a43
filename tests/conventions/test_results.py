"""Results of tool calls: only their content counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.conventions.hashing import HashedResult, Hasher
from otel_reliability.conventions.results import content_of, error_word
from otel_reliability.model.span import RawSpan
from otel_reliability.testing import span
from tests.conventions.reading import run

KIND = "openinference.span.kind"
LANGCHAIN = "openinference.instrumentation.langchain"


def hashed(hasher: Hasher, result: object) -> HashedResult:
    found = hasher.result(result)
    assert found is not None
    return found


def message(content: str, call_id: str, status: str = "success") -> dict[str, Any]:
    return {
        "content": content,
        "type": "tool",
        "name": "x",
        "id": None,
        "tool_call_id": call_id,
        "status": status,
    }


def constructor(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain_core", "messages", "ToolMessage"],
        "kwargs": fields,
    }


def envelopes(content: str, call_id: str, status: str) -> list[str]:
    """A result as frameworks wrap it."""
    tool = message(content, call_id, status)
    failed = status == "error"
    wrapped: list[dict[str, Any]] = [
        tool,
        {"type": "tool", "data": tool},
        {"output": tool},
        {"output": constructor(tool)},
        {"output": constructor(tool), "kwargs": {"tags": ["seq:step:1"]}},
        {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": failed},
        {
            "content": [{"type": "text", "text": content}],
            "isError": failed,
            "_meta": {"id": call_id},
        },
        {
            "blocks": [{"text": content}],
            "tool_name": "x",
            "raw_output": content,
            "is_error": failed,
        },
        {"type": "function_result", "call_id": call_id, "result": content, "is_error": failed},
    ]
    text = f"content={content!r} name='x' tool_call_id={call_id!r} status={status!r}"
    return [*map(json.dumps, wrapped), text]


@pytest.mark.parametrize(
    "content", ["refund RF-1 issued", '{"order_id": "1234"}', 'it\'s "quoted"\nhere']
)
def test_equal_results_are_equal_in_any_envelope(content: str) -> None:
    hasher = Hasher(b"key", ["^never"])
    plain = hashed(hasher, content).digest

    for one, other in zip(
        envelopes(content, "call_1", "success"), envelopes(content, "call_2", "error"), strict=True
    ):
        assert hashed(hasher, one).digest == plain
        assert not hashed(hasher, one).failed
        assert hashed(hasher, other).digest == plain
        assert hashed(hasher, other).failed


def test_adk_wraps_results() -> None:
    """Its function response has an id of its own; a result that is no object
    stands under `result`.
    """
    wrapped = '{"id": "adk-8bd8dc65", "name": "say_hello", "response": {"result": "Hello"}}'

    assert content_of(wrapped) == ("Hello", False)


@pytest.mark.parametrize(
    "result",
    [
        "plain text",
        {"status": "error", "orders": []},
        {"content": "a page", "title": "no envelope"},
        {"id": 7, "name": "x", "price": 3},
        "content='a text that only begins so'",
        [{"type": "image", "data": "…"}],
        7,
        None,
    ],
)
def test_what_is_no_envelope_is_a_result(result: object) -> None:
    assert content_of(result) == (result, False)


def test_patterns_of_soft_errors_see_the_content() -> None:
    """`^Error:` works, because the content begins so, whatever begins the envelope."""
    hasher = Hasher(b"key", ["^Error:"])

    assert all(
        hashed(hasher, one).failed for one in envelopes("Error: no such order", "call_1", "success")
    )
    assert not any(
        hashed(hasher, one).failed
        for one in envelopes("No Error: all is well", "call_1", "success")
    )


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("Error: no such order", "error"),
        ("<error>no such order</error>", "error"),
        ("ValueError: no such order", "error"),
        ("java.io.IOException at x", "exception"),
        ("Traceback (most recent call last):", "traceback"),
        ("Permission denied", "permission denied"),
        ("An error occurred while running the tool.", "an error occurred"),
        ("I encountered an error while trying to use the tool.", "i encountered an error"),
        ("An error budget of 5 %", None),
        ("timed out after 3 s", "timed out"),
        ({"error": "no such order"}, '"error":'),
        ('{"errors": ["no such order"]}', '"errors":'),
        ({"error": None, "orders": []}, None),
        ("no errors found", None),
        ("Terror on the train", None),
        (7, None),
    ],
)
def test_the_word_by_which_a_content_begins_like_an_error(
    content: object, word: str | None
) -> None:
    assert error_word(content) == word


def test_results_like_errors_that_no_rule_catches_are_counted_by_tool_and_word() -> None:
    hasher = Hasher(b"key", ["^ERR-"])
    for result, failed in [
        ("Error: a", False),
        ("Error: b", False),
        ("Error: c", True),
        ("ERR-7 invalid", False),
    ]:
        hasher.call("lookup", None, None, result, failed=failed)

    assert hasher.uncaught_errors == {("lookup", "error"): 2}


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda inner: st.dictionaries(
            st.sampled_from(
                (
                    "content",
                    "tool_call_id",
                    "status",
                    "output",
                    "result",
                    "lc",
                    "type",
                    "id",
                    "kwargs",
                    "data",
                    "is_error",
                )
            ),
            inner,
        ),
    )
)
def test_opening_is_total(value: object) -> None:
    for result in (value, json.dumps(value), str(value)):
        assert error_word(content_of(result).value) is None or True


def graph(*calls: tuple[str, str, str]) -> list[RawSpan]:
    """A LangGraph agent that makes these calls (tool, arguments, content of the result), each with
    a new call id.
    """
    spans = [span(1, name="support", scope=LANGCHAIN, attributes={KIND: "CHAIN"}, start=0, end=99)]
    for number, (name, arguments, content) in enumerate(calls, 2):
        output = json.dumps({"type": "tool", "data": message(content, f"call_{number}")})
        facts = {KIND: "TOOL", "tool.name": name, "input.value": arguments, "output.value": output}
        spans.append(
            span(number, 1, name=name, scope=LANGCHAIN, attributes=facts, start=2 * number)
        )
    return spans


def test_the_same_call_four_times_is_three_repeats() -> None:
    """LangGraph by OpenInference: results are equal although each has a call id of its own."""
    found = run(*graph(*[("lookup_order", '{"order_id": "1234"}', "shipped")] * 4))

    assert [call.repeat for call in found.tool_calls or ()] == [False, True, True, True]
    assert len({call.result for call in found.tool_calls or ()}) == 1


def test_tests_after_an_edit_are_no_repeat() -> None:
    tests = ("run_tests", "{}", "2 failed")
    found = run(
        *graph(tests, ("edit", '{"line": 1}', "ok"), tests, ("edit", '{"line": 2}', "ok"), tests)
    )

    assert [call.repeat for call in found.tool_calls or ()] == [False] * 5
