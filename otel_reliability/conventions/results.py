"""Results of tool calls without the envelopes that instrumentations put around them.

LangChain's ToolMessage, ADK's function response, MCP's call result and others hold the content of a
result next to ids that are new in each call, and sometimes a mark that the call failed. Equal
results must be equal, so only the content counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from otel_reliability.conventions import values

MAX_ENVELOPES: Final = 8
"""Envelopes in one another that are opened."""
MARKS: Final = frozenset(
    {"tool_call_id", "tool_use_id", "call_id", "isError", "is_error", "raw_output"}
)
"""Keys of which an envelope has one; without one an object is a result of the tool's own."""
CONTENTS: Final = ("content", "raw_output", "result", "response", "output")
"""Keys of the content of an envelope, the first that is there."""
UNMARKED: Final = {
    frozenset({"output"}): "output",  # frameworks wrap a result that is no object in one of these
    frozenset({"result"}): "result",
    frozenset({"id", "name", "response"}): "response",  # ADK
    frozenset({"output", "kwargs"}): "output",  # OpenLLMetry, of a tool's end
}
"""The keys of envelopes without a mark, and that of their content."""
LANGCHAIN: Final = frozenset({"lc", "type", "id", "kwargs"})
"""Keys of an object as LangChain serializes it."""

_STARTS: Final = frozenset('{["')
_REPR: Final = "content="
"""Start of the text of a ToolMessage."""
_REPR_CONTENT: Final = re.compile(
    r"""content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?:\s|$)""", re.DOTALL
)
_REPR_FAILED: Final = re.compile(r"""\bstatus=['"]error['"]""")
_ERROR: Final = re.compile(
    r"""[\s"'<\[(*]*(?:[\w.]*?(?P<type>Error|Exception)\b"""
    r"""|(?P<word>(?i:error|exception|traceback|failed|failure|fatal|invalid"""
    r"""|an error (?:has )?occurred|(?:i )?encountered an error|there was an error"""
    r"""|unable to|cannot|could not|not found|permission denied|access denied"""
    r"""|timed out|timeout))\b)"""
)
_ERROR_KEYS: Final = ("error", "errors", "exception")


class Content(NamedTuple):
    """The content of a result; `failed`: its envelope says that the call failed."""

    value: Any
    failed: bool = False


def content_of(result: object) -> Content:
    """Return the content of a result.

    >>> content_of(
    ...     '{"content": "Error: no such order", "tool_call_id": "call_7", '
    ...     '"status": "error", "type": "tool"}'
    ... )
    Content(value='Error: no such order', failed=True)
    >>> content_of('{"content": "a letter", "status": "error"}').failed
    False
    """
    if isinstance(result, str):
        if result[:1] == "c" and result.startswith(_REPR):
            return _content_of_text(result)
        if result[:1] not in _STARTS:
            return Content(result)
    value = values.parsed(result)
    failed = False
    for _ in range(MAX_ENVELOPES):
        if not isinstance(value, Mapping):
            break
        opened = _opened(cast("Mapping[str, Any]", value))
        if opened is None:
            break
        value = opened.value
        failed = failed or opened.failed
    return Content(_text_of_blocks(value), failed)


def error_word(content: object) -> str | None:
    """Return the word by which a content begins like an error, in lower case, or an object's key of
    one; None for any other.

    >>> (
    ...     error_word("ValueError: no such order"),
    ...     error_word('{"error": "no such order"}'),
    ...     error_word("3 errors were fixed"),
    ... )
    ('error', '"error":', None)
    """
    if isinstance(content, str) and content[:1] == "{":
        content = values.parsed(content)
    if isinstance(content, Mapping):
        pairs = cast("Mapping[str, Any]", content)
        return next((f'"{key}":' for key in _ERROR_KEYS if pairs.get(key)), None)
    found = _ERROR.match(content[:200]) if isinstance(content, str) else None
    return found[found.lastgroup or 0].lower() if found else None


def _opened(value: Mapping[str, Any]) -> Content | None:
    """Return the content of an object that is an envelope; None where it is a result itself."""
    keys = frozenset(value)
    if not MARKS.isdisjoint(keys):
        key = next((key for key in CONTENTS if key in keys), None)
        return None if key is None else Content(value[key], _has_failed(value))
    if keys in UNMARKED:
        return Content(value[UNMARKED[keys]])
    # A message as LangChain writes it.
    if keys == frozenset({"type", "data"}) and value["type"] == "tool":
        return Content(value["data"])
    if (
        LANGCHAIN.issuperset(keys)
        and value.get("lc") == 1
        and isinstance(value.get("kwargs"), Mapping)
    ):
        return Content(value["kwargs"])
    return None


def _has_failed(envelope: Mapping[str, Any]) -> bool:
    return (
        envelope.get("status") == "error"
        or envelope.get("isError") is True
        or envelope.get("is_error") is True
    )


def _text_of_blocks(value: Any) -> Any:
    """Return the text of a list of text blocks, as MCP and Anthropic have them; any other value as
    it is.
    """
    blocks = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()
    texts = [_text_of_block(block) for block in blocks]
    if not texts or None in texts:
        return cast("object", value)
    return "\n".join([text or "" for text in texts])


def _text_of_block(block: Any) -> str | None:
    if not isinstance(block, Mapping):
        return None
    pairs = cast("Mapping[str, Any]", block)
    text = pairs.get("text")
    return text if isinstance(text, str) and pairs.get("type", "text") == "text" else None


def _content_of_text(text: str) -> Content:
    """Return the content of the text of a ToolMessage: `content='…' name='…' tool_call_id='…'
    status='error'`.
    """
    found = _REPR_CONTENT.match(text) if len(text) <= values.MAX_TEXT else None
    rest = "" if found is None else text[found.end() :]
    if found is None or "tool_call_id=" not in rest:
        return Content(text)
    return Content(values.literal(found[1]), _REPR_FAILED.search(rest) is not None)
