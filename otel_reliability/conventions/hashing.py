"""Hashes of tool arguments and results: equal exactly where the calls were equal, and nothing else
can be read from them.

The text itself never leaves this module. The hash is keyed BLAKE2b of the canonical JSON of what
was meant, so that the same call has the same hash whichever instrumentation reported it; the key
stays on the machine, so that a value cannot be looked up.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from otel_reliability.conventions import values
from otel_reliability.conventions.base import Own, itself
from otel_reliability.conventions.masks import (
    REDACTED,
    ends_cut,
    is_mask,
    is_masked,
    lacks_middle,
    says_it_was_cut,
    stands_for_hidden,
)
from otel_reliability.conventions.results import content_of, error_word
from otel_reliability.model.blake2 import blake2b
from otel_reliability.model.coding import EFFECT_SIZE, has_command, marked, of_command
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.span import Call
from otel_reliability.model.tools import READS_ONLY, SHELL_WORDS, has_word, only_reads

DIGEST_SIZE: Final = EFFECT_SIZE

_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENS: Final = frozenset('{["')
CUT_LENGTHS: Final = frozenset(
    {*(1 << power for power in range(7, 21)), 4095, 5000, 10_000, 12_000, 32_766, 65_535, 100_000}
)
"""Characters at which SDKs, Collectors and backends are known to cut values."""
WRAPPED: Final = "kwargs"
"""The key under which libraries wrap the arguments of a call."""
LARGEST_INTEGER: Final = 1 << 128

_ADDRESS: Final = " at 0x"
"""The text before a memory address in Python's own texts of objects."""
_ADDRESSES: Final = re.compile(_ADDRESS + "[0-9a-fA-F]+")
_UNUSUAL: Final = (
    *("REDACTED", "<elided>", "Filtered]", "FILTERED", "runcated", "more char", "more byte"),
    *("masked>", "masked]", "MASKED", "***", "•••", "███", "XXXX"),
    *("edacted", "crubbed", "hidden]", "hidden>", "HIDDEN", "mitted", "PERSON>"),
    *("_ADDRESS>", "_NUMBER>", "_CARD>", "LOCATION>", '"masked"', '"hidden"'),
    *("[EMAIL", "<EMAIL", "{EMAIL", "[PHONE", "<PHONE", "{PHONE", "[PERSON", "<PERSON_"),
    *("[NAME", "<NAME", "{NAME", "[SSN", "<SSN", "[ADDRESS", "[LOCATION"),
    *("_BY_POLICY", "_by_policy"),
    *("PII", "PHI]", "PHI>", "SECRET", "PASSWORD", "TOKEN", "KEY]", "KEY>", "KEY}", "IBAN"),
    *("ORGANIZATION", "TRUNCATED", "SCRUBBED"),
    *(_ADDRESS, "\\u", "[object "),
)
"""A JSON text with one of these, with many brackets or with a long number is rewritten value by
value.
"""
_LONG_NUMBER: Final = re.compile("[0-9]{38}")
MAX_REMEMBERED: Final = 8_192
"""Values of which it is remembered what was read of them, by their hash."""

MAX_UNCAUGHT: Final = 1_024
"""Pairs of a tool and an error word that are counted."""

_UNKNOWN: Final = object()
_MAX_DEPTH: Final = 64
WRAPPER: Final = frozenset({"args", WRAPPED, "sanitize_inputs_outputs"})

_COMMAND_KEYS: Final = ("command", "cmd", "script", "code")
_COMMAND_FLAGS: Final = frozenset({"-c", "-lc"})

_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


class TextRules(Struct, frozen=True):
    """Rules by which a text is hashed, as data: code that hashes texts in another language follows
    these.

    - `wrapped`: the key whose presence in an object may make it a wrapper. `unusual`: texts that
      change how a text is read. Whatever has one is for Python to read.
    - `max_text`: characters beyond which no text is read as JSON.
    - `free_text_length`, `free_text_spaces`: a text longer than so many characters with at least so
      many spaces is free text.
    """

    wrapped: str
    unusual: tuple[str, ...]
    max_text: int
    free_text_length: int
    free_text_spaces: int


RULES: Final = TextRules(
    wrapped=WRAPPED,
    unusual=_UNUSUAL,
    max_text=values.MAX_TEXT,
    free_text_length=40,
    free_text_spaces=3,
)

Arguments: TypeAlias = "tuple[bytes | None, bytes | None]"
"""The hash of a call's arguments and that of what it changes."""


class HashedResult(Struct, frozen=True, gc=False):
    """The hash of a result's content, whether the call failed by it, the word by which it begins
    like an error, and whether the call failed by a pattern of the user.
    """

    digest: bytes | None
    failed: bool
    error_word: str | None
    is_soft_error: bool


class _Hidden(Exception):
    """A redaction mark stands somewhere in a value."""


class Hasher:
    """Hashes arguments and results under one key.

    Two processes whose hashes must agree (workers, restarts) share the key; otherwise it is random
    and dies with the process. `soft_errors` are the user's patterns of results that mean failure
    though the call returned normally, `effect_keys` the arguments that name what calls of a tool
    change (`tools.effect_key`).
    """

    def __init__(
        self,
        key: bytes | None = None,
        soft_errors: Iterable[str] = (),
        effect_keys: Mapping[str, str] | None = None,
    ) -> None:
        key = (os.urandom(32) if key is None else key)[:64]
        self._begun = blake2b(digest_size=DIGEST_SIZE, key=key)
        self._soft_errors = [re.compile(pattern) for pattern in soft_errors]
        self.has_soft_errors = bool(self._soft_errors)
        self._effect_keys = effect_keys or {}
        self.known = Remembered[tuple[Callable[..., Any], Callable[[Any], Any], int], Any](
            MAX_REMEMBERED
        )
        self.uncaught_errors: Counter[tuple[str, str]] = Counter()
        """Results that begin like an error of calls that count as successful, by tool and word. No
        content is kept.
        """

    def once(self, own: Own, given: tuple[Any, ...], value: Callable[[Any], Any]) -> Any:
        """Return the same as `own.of`; of values read before without reading them again. Only a
        hash of the values is kept.
        """
        if value is itself and not all(one is None or type(one) is str for one in given):
            return own.of(given, value)  # 1, 1.0 and True are equal, and may be read differently
        key = own.reader, value, hash(given)
        found = self.known.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            found = self.known[key] = own.of(given, value)
        return found

    def call(
        self,
        name: str | None,
        call_id: str | None,
        arguments: object,
        result: object = None,
        *,
        failed: bool,
    ) -> Call:
        """A tool call, its arguments and its result hashed; failed also where the result is a soft
        error to the user.
        """
        return self.hashed_call(
            name, call_id, self.arguments_of(name)(arguments), self.result(result), failed=failed
        )

    def hashed_call(
        self,
        name: str | None,
        call_id: str | None,
        arguments: Arguments | None,
        result: HashedResult | None,
        *,
        failed: bool,
    ) -> Call:
        """A tool call of what `arguments_of` and `result` return, None where the span holds no such
        value.
        """
        digest, effect = arguments or (None, None)
        if result is None:
            return Call(name, call_id, digest, failed=failed, effect=effect)
        failed = failed or result.failed
        if (
            result.error_word is not None
            and not failed
            and len(self.uncaught_errors) < MAX_UNCAUGHT
        ):
            self.uncaught_errors[name or "", result.error_word] += 1
        return Call(name, call_id, digest, failed=failed, result=result.digest, effect=effect)

    def arguments_of(self, name: str | None) -> Callable[[object], Arguments]:
        """Return what hashes the arguments of calls of a tool; of a shell and of tools of the
        user's also by what they say.
        """
        pattern = next(
            (
                pattern
                for pattern in self._effect_keys
                if name is not None and fnmatchcase(name, pattern)
            ),
            None,
        )
        is_of_shell = name is not None and has_word(name, SHELL_WORDS)
        holds_command = name is not None and has_command(name)
        if pattern is None and not holds_command:
            return self.arguments

        def hashed(arguments: object) -> Arguments:
            digest, effect = self.arguments(arguments)
            command = _command_of(arguments) if holds_command and digest is not None else None
            if is_of_shell and command is not None and only_reads(command):
                return digest, READS_ONLY
            if digest is not None and pattern is not None:
                effect = self._hash_of_argument(self._effect_keys[pattern], arguments) or effect
            if effect is not None and command is not None:
                effect = marked(effect, of_command(command))
            return digest, effect

        return hashed

    def _hash_of_argument(self, argument: str, arguments: object) -> bytes | None:
        """Return the hash of one argument of a call, None where it is absent or redacted."""
        _, meant = unwrapped(arguments)
        given = (
            cast("Mapping[str, Any]", meant).get(argument) if isinstance(meant, Mapping) else None
        )
        return None if given is None else self.value(given)

    def result(self, result: object) -> HashedResult | None:
        """Return what a result says of its call: its envelope or a pattern of the user may say that
        the call failed.
        """
        if result is None:
            return None
        content, failed = content_of(result)
        is_soft = self._matches(content)
        return HashedResult(
            digest=self.value(content),
            failed=failed or is_soft,
            error_word=error_word(content),
            is_soft_error=is_soft,
        )

    def value(self, value: object) -> bytes | None:
        """The hash of a value, or None where it is absent or redacted.

        >>> hasher = Hasher(b"key")
        >>> hasher.value('{"a": 1, "b": 2}') == hasher.value({"b": 2.0, "a": 1})
        True
        >>> hasher.value("__REDACTED__") is None
        True
        """
        text, _ = _canonical(value)
        return None if text is None else self._digest(text)

    def arguments(self, value: object) -> tuple[bytes | None, bytes | None]:
        """The hash of a call's arguments, and of the arguments without free text.

        >>> hasher = Hasher(b"key")
        >>> one = hasher.arguments(
        ...     {"id": 1, "note": "please be so kind and send this to my wife at home"}
        ... )
        >>> two = hasher.arguments(
        ...     {"id": 1, "note": "kindly send this to the wife of mine when you can"}
        ... )
        >>> one[0] == two[0], one[1] == two[1]
        (False, True)
        """
        text, meant = _canonical(value)
        if text is None or (isinstance(meant, str) and len(meant) in CUT_LENGTHS):
            return None, None
        if lacks_middle(text):
            return None, None
        digest = self._digest(text)
        if len(text) <= RULES.free_text_length or text.count(" ") < RULES.free_text_spaces:
            return digest, digest
        return digest, self._digest(canonical(_without_free_text(meant, 0)) or "")

    def fingerprint(self, value: object) -> str | None:
        """A printable hash of a prompt or of tool definitions as they stand; None where they are
        absent or redacted.
        """
        if isinstance(value, str):
            return None if not value or value in REDACTED else self.text(value)
        digest = self.value(value)
        return None if digest is None else digest.hex()

    def text(self, value: str) -> str:
        """A short printable hash of an identifier that must not leave as it is."""
        return self._digest(value).hex()

    def _matches(self, content: object) -> bool:
        if not self._soft_errors:
            return False
        shown = content if isinstance(content, str) else canonical(content) or ""
        return any(pattern.search(shown) for pattern in self._soft_errors)

    def digest(self, text: bytes) -> bytes:
        """The keyed hash of bytes."""
        digest = self._begun.copy()
        digest.update(text)
        return digest.digest()

    def _digest(self, text: str) -> bytes:
        return self.digest(text.encode("utf-8", "surrogatepass"))


def _canonical(value: object) -> tuple[str | None, Any]:
    """The canonical JSON of what a value means without its wrappers (None: unknown), and what it
    means.
    """
    meant = _common_json(value) if type(value) is str and value[:1] in {"{", "["} else None
    if meant is not None:
        meant = _without_wrapper(meant)
        return _encode(meant), meant
    known, meant = unwrapped(value)
    return canonical(meant) if known else None, meant


def _command_of(arguments: object) -> str | None:
    """Return the command that the arguments of a shell or an editor hold; None without one."""
    _, meant = unwrapped(arguments)
    if isinstance(meant, Mapping):
        given = cast("Mapping[str, Any]", meant)
        meant = next((given[key] for key in _COMMAND_KEYS if key in given), None)
    if isinstance(meant, list | tuple):
        words = [str(word) for word in cast("Sequence[Any]", meant)]
        meant = words[2] if len(words) == 3 and words[1] in _COMMAND_FLAGS else shlex.join(words)
    return meant if isinstance(meant, str) else None


def is_known(value: object) -> bool:
    """Return whether a value is present and not redacted."""
    return _canonical(value)[0] is not None


def _common_json(text: str) -> Any:
    """Return what most JSON texts mean, its floats as canonical JSON has them; None where only
    `canonical` can say.
    """
    if len(text) > values.MAX_TEXT or text.count("{") + text.count("[") >= _MAX_DEPTH:
        return None
    if any(mark in text for mark in _UNUSUAL) or _LONG_NUMBER.search(text):
        return None
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None


def _float(text: str) -> object:
    return _plain(float(text), 0)


_decode: Final = json.JSONDecoder(parse_float=_float, parse_constant=_float).decode


def unwrapped(value: object) -> tuple[bool, Any]:
    """Return whether a value is known, and what it means without the wrappers that libraries put
    around arguments.

    >>> (
    ...     unwrapped('{"args": [], "kwargs": {"id": 1}}'),
    ...     unwrapped({"kwargs": {"id": 1}}),
    ...     unwrapped(None),
    ... )
    ((True, {'id': 1}), (True, {'id': 1}), (False, None))
    """
    if value is None or value == "":
        return False, None
    meant = values.parsed(value)
    if isinstance(meant, str) and (is_mask(meant) or is_cut(meant)):
        return False, None
    return True, _without_wrapper(meant)


def is_cut(text: str) -> bool:
    """Return whether a text that is no JSON was cut off: it opens like JSON and does not close, or
    says so at its end.

    >>> is_cut('{"path": "a.py", "content": "impo'), is_cut("[1] the first source")
    (True, False)
    """
    if len(text) > values.MAX_TEXT:
        return False
    if says_it_was_cut(text):
        return True
    if text.lstrip()[:1] not in _OPENS:
        return False
    rest = _QUOTED.sub("", text)
    opened, closed = rest.count("{") + rest.count("["), rest.count("}") + rest.count("]")
    return opened > closed or '"' in rest


def _without_wrapper(meant: Any) -> Any:
    if not isinstance(meant, Mapping):
        return meant
    pairs = cast("Mapping[str, Any]", meant)
    if WRAPPED not in pairs or not WRAPPER.issuperset(pairs):
        return pairs
    positional = pairs.get("args")
    named = pairs[WRAPPED]
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
    """Return the same value with text keys, whole floats as integers, no memory addresses, no types
    of Python's own.
    """
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -LARGEST_INTEGER < value < LARGEST_INTEGER else hex(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    return _plain_collection(value, depth) if depth < _MAX_DEPTH else "…"


def _plain_text(value: str) -> str:
    if is_masked(value) or ends_cut(value):
        raise _Hidden
    return _ADDRESSES.sub("", value) if _ADDRESS in value else value


def _plain_collection(value: object, depth: int) -> object:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value)
        if stands_for_hidden(pairs):
            raise _Hidden
        return {str(key): _plain(item, depth + 1) for key, item in pairs.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in cast("Iterable[Any]", value)]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, depth + 1) for item in cast("Iterable[Any]", value)), key=repr)
    return value.hex() if isinstance(value, bytes) else _plain_text(str(value))


def _is_free_text(value: object) -> bool:
    return (
        isinstance(value, str)
        and len(value) > RULES.free_text_length
        and value.count(" ") >= RULES.free_text_spaces
    )


def _without_free_text(value: object, depth: int) -> object:
    """The value without its free texts, in objects and lists, at any depth."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {
            key: _without_free_text(item, depth + 1)
            for key, item in pairs
            if not _is_free_text(item)
        }
    if isinstance(value, list | tuple):
        items = cast("Iterable[Any]", value)
        return [_without_free_text(item, depth + 1) for item in items if not _is_free_text(item)]
    return None if _is_free_text(value) else value
