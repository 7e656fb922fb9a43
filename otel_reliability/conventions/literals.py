"""Python literals as data: what `repr` writes of objects, lists, tuples, texts, numbers, True, False and None.

Some instrumentations write values that way (openlit, LlamaIndex). Python's own reader of literals compiles them, which costs
much, warns on the host's standard error, and can exhaust its stack; so a literal is rewritten as JSON, in one pass, and read
as that. What is none is left as the text it is.

>>> read("{'order': 7, 'tags': ('a', None)}")
{'order': 7, 'tags': ['a', None]}
>>> read("[print('no')]")
"[print('no')]"
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

MAX_TEXT: Final = 1 << 16
"""Characters beyond which a text is left alone."""

_TOKEN: Final = re.compile(
    r"""(?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")"""
    r"|['\"].*"  # a text without an end: nothing after it is read, and JSON refuses it
    r"|\b(?:True|False|None)\b"
    r"|,(?=\s*[)\]}])"
    r"|[()]",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:x(..)|u(.{4})|U(.{8})|(.))", re.DOTALL)
_JSON: Final[Mapping[str, str]] = {"True": "true", "False": "false", "None": "null", ",": "", "(": "[", ")": "]"}
_ESCAPED: Final[Mapping[str, str]] = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def read(text: str, otherwise: str | None = None) -> Any:
    """The data that a literal writes; `otherwise`, or the text itself, where it is no literal."""
    if len(text) <= MAX_TEXT:
        try:
            return json.loads(_TOKEN.sub(_as_json, text))
        except (ValueError, RecursionError, OverflowError):
            pass
    return text if otherwise is None else otherwise


def _as_json(token: re.Match[str]) -> str:
    if token["text"] is None:
        return _JSON.get(token[0], token[0])
    return json.dumps(_ESCAPE.sub(_meant, token["text"][1:-1]))


def _meant(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is not None:
        return chr(int(code, 16))
    return _ESCAPED.get(escape[4], escape[0])
