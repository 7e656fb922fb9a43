"""Hashes of tool arguments and results: equal exactly where the calls were equal, and telling nothing else.

The text itself never leaves this module. The hash is keyed BLAKE2b of the canonical JSON of what was meant, so that the same
call has the same hash whichever instrumentation told it; the key stays on the machine, so that nobody can look a value up.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from otel_reliability.conventions import flat_json, values
from otel_reliability.model.span import Call

DIGEST_SIZE: Final = 8

_ADDRESS: Final = re.compile(flat_json.ADDRESS + "[0-9a-fA-F]+")
_FREE_TEXT_LENGTH: Final = 40
_FREE_TEXT_SPACES: Final = 3
_MAX_DEPTH: Final = 64
_WRAPPER: Final = frozenset({"args", flat_json.WRAPPED, "sanitize_inputs_outputs"})

_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""


class _Hidden(Exception):
    """A redaction mark stands somewhere in a value."""


class Hasher:
    """Hashes arguments and results under one key.

    Two processes whose hashes must agree (workers, restarts) share the key; otherwise it is random and dies with the process.
    `soft_errors` are the user's patterns of results that mean failure though the call returned normally.
    """

    def __init__(self, key: bytes | None = None, soft_errors: Iterable[str] = ()) -> None:
        key = (secrets.token_bytes(32) if key is None else key)[:64]
        self._begun = hashlib.blake2b(digest_size=DIGEST_SIZE, key=key)
        self._soft_errors = [re.compile(pattern) for pattern in soft_errors]

    def call(
        self, name: str | None, call_id: str | None, arguments: object, result: object = None, *, failed: bool
    ) -> Call:
        """A tool call, its arguments and its result hashed; failed also where the result is a soft error to the user."""
        digest, effect = self.arguments(arguments)
        failed = failed or (bool(self._soft_errors) and self._is_soft_error(result))
        return _tuple(Call, (name, call_id, digest, failed, self.value(result), effect))

    def value(self, value: object) -> bytes | None:
        """The hash of a value, or None where it is absent or redacted.

        >>> hasher = Hasher(b"key")
        >>> hasher.value('{"a": 1, "b": 2}') == hasher.value({"b": 2.0, "a": 1})
        True
        >>> hasher.value("__REDACTED__") is None
        True
        """
        if value is None:
            return None
        text = flat_json.canonical(value)
        if text is None:
            known, meant = unwrapped(value)
            text = canonical(meant) if known else None
        return None if text is None else self._digest(text)

    def arguments(self, value: object) -> tuple[bytes | None, bytes | None]:
        """The hash of a call's arguments, and of the arguments without free text.

        >>> hasher = Hasher(b"key")
        >>> one = hasher.arguments({"id": 1, "note": "please be so kind and send this to my wife at home"})
        >>> two = hasher.arguments({"id": 1, "note": "kindly send this to the wife of mine when you can"})
        >>> one[0] == two[0], one[1] == two[1]
        (False, True)
        """
        text = flat_json.canonical(value)
        if text is not None and not _may_hold_free_text(text):
            digest = self._digest(text)
            return digest, digest
        known, meant = unwrapped(value)
        text = canonical(meant) if known else None
        if text is None:
            return None, None
        digest = self._digest(text)
        if not _may_hold_free_text(text):
            return digest, digest
        return digest, self._digest(canonical(_without_free_text(meant, 0)) or "")

    def text(self, value: str) -> str:
        """A short printable hash of an identifier that must not leave as it is."""
        return self._digest(value).hex()

    def _is_soft_error(self, result: object) -> bool:
        if result is None:
            return False
        shown = result if isinstance(result, str) else canonical(result) or ""
        return any(pattern.search(shown) for pattern in self._soft_errors)

    def _digest(self, text: str) -> bytes:
        digest = self._begun.copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()


def unwrapped(value: object) -> tuple[bool, Any]:
    """Whether a value is known, and what it means without the wrappers that libraries put around arguments.

    >>> unwrapped('{"args": [], "kwargs": {"id": 1}}'), unwrapped({"kwargs": {"id": 1}}), unwrapped(None)
    ((True, {'id': 1}), (True, {'id': 1}), (False, None))
    """
    if value is None or value == "":
        return False, None
    meant = values.parsed(value)
    return True, _without_wrapper(cast("Mapping[str, Any]", meant)) if isinstance(meant, Mapping) else meant


def _without_wrapper(meant: Mapping[str, Any]) -> Any:
    if flat_json.WRAPPED not in meant or not _WRAPPER.issuperset(meant):
        return meant
    positional, named = meant.get("args"), meant[flat_json.WRAPPED]
    return [positional, named] if positional else named


def canonical(value: object) -> str | None:
    """The JSON of a value, spelled one way; None where a redaction mark stands in it.

    >>> canonical({"b": 2.0, "a": (1,)}), canonical({"a": "<redacted>"})
    ('{"a":[1],"b":2}', None)
    """
    try:
        return _encode(_plain(value, 0))
    except _Hidden:
        return None


def _plain(value: object, depth: int) -> object:
    """The same value with text keys, whole floats as integers, no memory addresses, no types of Python's own."""
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -flat_json.LARGEST_INTEGER < value < flat_json.LARGEST_INTEGER else hex(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    return _plain_collection(value, depth) if depth < _MAX_DEPTH else "…"


def _plain_text(value: str) -> str:
    if value in flat_json.REDACTED:
        raise _Hidden
    return _ADDRESS.sub("", value) if flat_json.ADDRESS in value else value


def _plain_collection(value: object, depth: int) -> object:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value)
        return {str(key): _plain(item, depth + 1) for key, item in pairs.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in cast("Iterable[Any]", value)]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, depth + 1) for item in cast("Iterable[Any]", value)), key=repr)
    return value.hex() if isinstance(value, bytes) else _plain_text(str(value))


def _may_hold_free_text(text: str) -> bool:
    return len(text) > _FREE_TEXT_LENGTH and text.count(" ") >= _FREE_TEXT_SPACES


def _is_free_text(value: object) -> bool:
    return isinstance(value, str) and len(value) > _FREE_TEXT_LENGTH and value.count(" ") >= _FREE_TEXT_SPACES


def _without_free_text(value: object, depth: int) -> object:
    """The value without its free texts, in objects and lists, at any depth."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {key: _without_free_text(item, depth + 1) for key, item in pairs if not _is_free_text(item)}
    if isinstance(value, list | tuple):
        items = cast("Iterable[Any]", value)
        return [_without_free_text(item, depth + 1) for item in items if not _is_free_text(item)]
    return None if _is_free_text(value) else value
