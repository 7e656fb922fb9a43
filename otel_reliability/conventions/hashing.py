"""Hashes of tool arguments and results: equal exactly where the calls were equal, and telling nothing else.

The text itself never leaves this module. The hash is keyed BLAKE2b of the canonical JSON of what was meant, so that the same
call has the same hash whichever instrumentation told it; the key stays on the machine, so that nobody can look a value up.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from otel_reliability.conventions import values
from otel_reliability.model.span import Call

DIGEST_SIZE: Final = 8

REDACTED: Final = frozenset({"__REDACTED__", "[REDACTED]", "<REDACTED>", "REDACTED", "<elided>", "<redacted>"})
"""What instrumentations write where they hide a value: it tells nothing, so the hash is unknown."""

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_FREE_TEXT_LENGTH: Final = 40
_FREE_TEXT_SPACES: Final = 3
_MAX_DEPTH: Final = 64


class Hasher:
    """Hashes arguments and results under one key.

    Two processes whose hashes must agree (workers, restarts) share the key; otherwise it is random and dies with the process.
    `soft_errors` are the user's patterns of results that mean failure though the call returned normally.
    """

    def __init__(self, key: bytes | None = None, soft_errors: Iterable[str] = ()) -> None:
        self._key = (secrets.token_bytes(32) if key is None else key)[:64]
        self._soft_errors = [re.compile(pattern) for pattern in soft_errors]

    def call(
        self, name: str | None, call_id: str | None, arguments: object, result: object = None, *, failed: bool
    ) -> Call:
        """A tool call, its arguments and its result hashed; failed also where the result is a soft error to the user."""
        digest, effect = self.arguments(arguments)
        return Call(name, call_id, digest, failed or self._is_soft_error(result), self.value(result), effect)

    def _is_soft_error(self, result: object) -> bool:
        if not self._soft_errors or result is None:
            return False
        shown = result if isinstance(result, str) else repr(result)
        return any(pattern.search(shown) for pattern in self._soft_errors)

    def value(self, value: object) -> bytes | None:
        """The hash of a value, or None where it is absent or redacted.

        >>> hasher = Hasher(b"key")
        >>> hasher.value('{"a": 1, "b": 2}') == hasher.value({"b": 2.0, "a": 1})
        True
        >>> hasher.value("__REDACTED__") is None
        True
        """
        known, meant = unwrapped(value)
        return self._digest(meant) if known else None

    def arguments(self, value: object) -> tuple[bytes | None, bytes | None]:
        """The hash of a call's arguments, and of the arguments without free text (DESIGN §5.6).

        >>> hasher = Hasher(b"key")
        >>> one = hasher.arguments({"id": 1, "note": "please be so kind and send this to my wife at home"})
        >>> two = hasher.arguments({"id": 1, "note": "kindly send this to the wife of mine when you can"})
        >>> one[0] == two[0], one[1] == two[1]
        (False, True)
        """
        known, meant = unwrapped(value)
        if not known:
            return None, None
        digest = self._digest(meant)
        kept = _without_free_text(meant, 0)
        return digest, digest if kept == meant else self._digest(kept)

    def text(self, value: str) -> str:
        """A short printable hash of an identifier that must not leave as it is."""
        return hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=DIGEST_SIZE, key=self._key).hexdigest()

    def _digest(self, meant: object) -> bytes:
        canonical = json.dumps(_canonical(meant, 0), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        encoded = canonical.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(encoded, digest_size=DIGEST_SIZE, key=self._key).digest()


def unwrapped(value: object) -> tuple[bool, Any]:
    """Whether a value is known, and what it means without the wrappers that libraries put around arguments.

    >>> unwrapped('{"args": [], "kwargs": {"id": 1}}'), unwrapped({"kwargs": {"id": 1}}), unwrapped(None)
    ((True, {'id': 1}), (True, {'id': 1}), (False, None))
    """
    if value is None or (isinstance(value, str) and (not value or value in REDACTED)):
        return False, None
    meant = values.parsed(value)
    if isinstance(meant, Mapping):
        keys = set(meant)
        if keys == {"kwargs"} or (keys >= {"args", "kwargs"} and keys <= {"args", "kwargs", "sanitize_inputs_outputs"}):
            arguments, named = meant.get("args"), meant["kwargs"]
            meant = named if not arguments else [arguments, named]
    return True, meant


def _canonical(value: object, depth: int) -> object:
    """The same value spelled one way: text keys, whole floats as integers, no memory addresses, no types of Python's own."""
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(value, str):
        return _ADDRESS.sub("", value) if " at 0x" in value else value
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _canonical(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_canonical(item, depth + 1) for item in value), key=repr)
    if isinstance(value, bytes):
        return value.hex()
    return _ADDRESS.sub("", str(value))


def _is_free_text(value: object) -> bool:
    return isinstance(value, str) and len(value) > _FREE_TEXT_LENGTH and value.count(" ") >= _FREE_TEXT_SPACES


def _without_free_text(value: Any, depth: int) -> Any:
    """The value without its free texts, in objects and lists, at any depth."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {k: _without_free_text(v, depth + 1) for k, v in value.items() if not _is_free_text(v)}
    if isinstance(value, list | tuple):
        return [_without_free_text(item, depth + 1) for item in value if not _is_free_text(item)]
    return None if _is_free_text(value) else value
