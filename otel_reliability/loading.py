"""Frozen dataclasses from mappings and environment variables; whatever is wrong is told in four parts.

This knows nothing of which settings there are: their fields, types (`quantities`) and defaults are read from the dataclass.
A value of the right type, a mapping (of a YAML file, say) and text (an environment variable's) are read by one function, so
that a setting means the same from everywhere:

    type                   text
    number, text, word     as it is
    tuple[X, ...]          `a, b, c`, or a JSON list
    Mapping[str, X]        `a=1, b=2`, or a JSON object
    a dataclass            a JSON object

A dataclass may have a method `contradiction()` that tells of fields that do not go together.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from otel_reliability.errors import ConfigurationError
from otel_reliability.quantities import Boolean, OneOf, Real, Rule, Text, Whole, nearest

PLAIN: Final[Mapping[Any, Rule]] = {bool: Boolean(), int: Whole(), float: Real(), str: Text()}

Loaded = TypeVar("Loaded")


class Contradiction(NamedTuple):
    """Two fields that do not go together, or one that is missing: the parts of a `ConfigurationError`."""

    field: str
    value: object
    allowed: str
    remedy: str


@runtime_checkable
class Contradictable(Protocol):
    """A dataclass some of whose fields must go together."""

    def contradiction(self) -> Contradiction | None:
        """What does not go together."""
        ...


class Field(NamedTuple):
    """One setting: its path (`assembly.linger`), its type with the rule on it, and its default."""

    path: str
    hint: Any
    default: object


def load(kind: type[Loaded], raw: object, *, base: Loaded | None = None, path: str = "") -> Loaded:
    """A dataclass from a mapping, or from an instance whose fields are then checked; what is not given is taken from `base`.

    >>> from otel_reliability.config import AssemblySettings
    >>> load(AssemblySettings, {"linger": "500ms"}).linger
    0.5
    >>> load(AssemblySettings, {"lingr": 1}, path="assembly")
    Traceback (most recent call last):
    ...
    otel_reliability.errors.ConfigurationError: assembly.lingr: 'lingr' is not a setting; the nearest is linger.
    """
    given = _mapping(kind, raw, path)
    hints = _hints(kind)
    for name in given:
        if name not in hints:
            raise ConfigurationError(_join(path, str(name)), name, "a setting", nearest(str(name), hints))
    found = {name: _field(hints[name], value, base, path, name) for name, value in given.items()}
    return _checked(_made(kind, base, found), path)


def load_environment(
    kind: type[Loaded], env: Mapping[str, str], prefix: str, *, base: Loaded | None = None, others: Collection[str] = ()
) -> Loaded:
    """A dataclass from environment variables: the path of a field in upper case behind `prefix`.

    An empty variable counts as absent, as OpenTelemetry specifies. A variable with the prefix that names no setting, and is none
    of the `others`, is an error: it is a setting misspelt.
    """
    names = {variable(field.path, prefix) for field in fields(kind)}
    for name in sorted(env):
        if name.startswith(prefix) and name not in names and name not in others:
            raise ConfigurationError(name, name, "a setting", nearest(name, names))
    return load(kind, _from_environment(kind, env, prefix, base))


def settle(value: object) -> None:
    """Check and convert the fields of a frozen dataclass in place: for its `__post_init__`."""
    kind = type(value)
    for name, hint in _hints(kind).items():
        object.__setattr__(value, name, _field(hint, getattr(value, name), None, "", name))
    _checked(value, "")


def fields(kind: type[Any], path: str = "") -> Iterator[Field]:
    """All settings of a dataclass, those of its parts with their paths."""
    default = kind()
    for name, hint in _hints(kind).items():
        if dataclasses.is_dataclass(hint):
            yield from fields(cast("type[Any]", hint), _join(path, name))
        else:
            yield Field(_join(path, name), hint, getattr(default, name))


def variable(path: str, prefix: str) -> str:
    """The environment variable of a setting.

    >>> variable("assembly.idle_timeout", "OTEL_RELIABILITY_")
    'OTEL_RELIABILITY_ASSEMBLY_IDLE_TIMEOUT'
    """
    return prefix + path.replace(".", "_").upper()


def rule_of(hint: Any) -> Rule:
    """The rule that a single value's type carries."""
    if get_origin(hint) is Annotated:
        return next(rule for rule in get_args(hint) if isinstance(rule, Rule))
    return OneOf(get_args(hint)) if get_origin(hint) is Literal else PLAIN[hint]


def read(hint: Any, raw: object, path: str) -> Any:
    """A value of a field's type, from a value, a mapping, a list or text."""
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        inner = next(arg for arg in get_args(hint) if arg is not types.NoneType)
        return None if raw is None else read(inner, raw, path)
    if origin is tuple:
        return _tuple(get_args(hint)[0], raw, path)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _dictionary(get_args(hint)[1], raw, path)
    if dataclasses.is_dataclass(hint):
        return load(cast("type[Any]", hint), raw, path=path)
    return _single(rule_of(hint), raw, path)


def _single(rule: Rule, raw: object, path: str) -> object:
    try:
        return rule.read(raw)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        # Without the cause: its message would show what `shown` hides.
        raise ConfigurationError(path, rule.shown(raw), rule.allowed, rule.advice(raw)) from None


def _tuple(hint: Any, raw: object, path: str) -> tuple[Any, ...]:
    items = _parts(raw) if isinstance(raw, str) else raw
    if not isinstance(items, Sequence):
        raise ConfigurationError(path, raw, "a list", "write one, with brackets or dashes")
    return tuple(read(hint, item, f"{path}[{index}]") for index, item in enumerate(cast("Sequence[object]", items)))


def _parts(text: str) -> list[object]:
    """The items of a list written as text. A shell glob may begin with a bracket too, so what is no JSON is split at commas."""
    items = _json(text)
    return (
        cast("list[object]", items) if isinstance(items, list) else [part for part in text.split(",") if part.strip()]
    )


def _dictionary(hint: Any, raw: object, path: str) -> dict[str, Any]:
    items = _pairs(raw, path) if isinstance(raw, str) else raw
    if not isinstance(items, Mapping):
        raise ConfigurationError(path, raw, "a mapping", "write it like {name: value}")
    return {
        str(key): read(hint, value, f"{path}[{key}]") for key, value in cast("Mapping[object, object]", items).items()
    }


def _pairs(text: str, path: str) -> object:
    """The items of a mapping written as text. The last `=` of a pair divides it: values hold none, patterns may."""
    items = _json(text)
    if isinstance(items, dict):
        return cast("dict[str, object]", items)
    pairs = [part.rpartition("=") for part in text.split(",") if part.strip()]
    if not all(divided for _, divided, _ in pairs):
        raise ConfigurationError(path, text, "a mapping", "write it like name=value, name=value")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _mapping(kind: type[Any], raw: object, path: str) -> Mapping[str, object]:
    """The fields given: of an instance all, of a file's empty section none."""
    if isinstance(raw, kind):
        return {name: getattr(raw, name) for name in _hints(kind)}
    found: object = _json(raw) if isinstance(raw, str) else raw
    if raw is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigurationError(path or "settings", raw, "a mapping of settings", "write it like {name: value}")
    return cast("Mapping[str, object]", found)


def _field(hint: Any, value: object, base: object, path: str, name: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return load(cast("type[Any]", hint), value, base=getattr(base, name, None), path=_join(path, name))
    return read(hint, value, _join(path, name))


def _from_environment(kind: type[Loaded], env: Mapping[str, str], prefix: str, base: Loaded | None) -> Loaded:
    found: dict[str, Any] = {}
    for name, hint in _hints(kind).items():
        key = variable(name, prefix)
        if dataclasses.is_dataclass(hint):
            found[name] = _from_environment(cast("type[Any]", hint), env, f"{key}_", getattr(base, name, None))
        elif env.get(key, "").strip():
            found[name] = read(hint, env[key], key)
    return _made(kind, base, found)


def _made(kind: type[Loaded], base: Loaded | None, found: Mapping[str, Any]) -> Loaded:
    return kind(**found) if base is None else cast("Loaded", dataclasses.replace(cast("Any", base), **found))


def _checked(value: Loaded, path: str) -> Loaded:
    wrong = value.contradiction() if isinstance(value, Contradictable) else None
    if wrong:
        raise ConfigurationError(_join(path, wrong.field), *wrong[1:])
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@functools.cache
def _hints(kind: type[Any]) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)
