"""Settings as msgspec structs, read from mappings (a YAML file's), environment variables and code.

A value of the right type and text mean the same, because environment variables are text:

    type                   text
    duration, size         `10m`, `1h30m`, `250ms`; `64KiB`, `512MiB`
    number, text, word     as it is
    tuple[X, ...]          `a, b, c`, or a JSON list
    Mapping[str, X]        `a=1, b=2`, or a JSON object
    a struct               a JSON object

msgspec converts and validates each value. An error names the field, the value and the remedy.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo

from otel_reliability.errors import ConfigurationError

T = TypeVar("T", bound=Struct)

DURATION: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
SIZE: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

Seconds: TypeAlias = Annotated[
    float,
    Meta(
        ge=0,
        extra={
            "units": DURATION,
            "allowed": "a duration",
            "remedy": "write it like 10m, 1h30m or 250ms",
        },
    ),
]
Bytes: TypeAlias = Annotated[
    int,
    Meta(
        ge=0, extra={"units": SIZE, "allowed": "a size", "remedy": "write it like 64KiB or 512MiB"}
    ),
]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Points: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Weight: TypeAlias = Annotated[float, Meta(ge=0)]
Text: TypeAlias = Annotated[
    str,
    Meta(pattern=r"\S", extra={"allowed": "text", "remedy": "quote it if it looks like a number"}),
]
Secret: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[!-~]+$",
        extra={"secret": True, "allowed": "text without spaces", "remedy": "remove the spaces"},
    ),
]
HexKey: TypeAlias = Annotated[
    str,
    Meta(
        pattern="^([0-9a-fA-F]{2}){16,}$",
        extra={
            "secret": True,
            "allowed": "an even number of hexadecimal digits, 32 or more",
            "remedy": "make one with `python -c 'import secrets; print(secrets.token_hex())'`",
        },
    ),
]

Url: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^https?://[^/:\s]",
        extra={
            "allowed": "a URL with http or https, a host and a port",
            "remedy": "write it like http://127.0.0.1:4317",
        },
    ),
]

Internal: TypeAlias = Annotated[int, Meta(ge=0, extra={"internal": True})]
"""A number that code may set and users cannot: it has no place in files, variables or docs."""
InternalSeconds: TypeAlias = Annotated[float, Meta(ge=0, extra={"internal": True})]


class Field(NamedTuple):
    """One setting: its path (`assembly.linger`), its type as annotated, and its default."""

    path: str
    type: Any
    default: object


# --- Loading --------------------------------------------------------------------------------------


def load(kind: type[T], raw: object, *, base: T | None = None, path: str = "") -> T:
    """Return a struct from a mapping (or an instance, which is then checked); what is absent is
    taken from `base`.

    Sections are merged field by field; lists and mappings are replaced, and internal fields derived
    again. Raises `ConfigurationError`, which names the field by its whole path below `path`.

    >>> from otel_reliability.config import AssemblySettings
    >>> load(AssemblySettings, {"linger": "500ms"}).linger
    0.5
    >>> load(AssemblySettings, {"lingr": 1}, path="assembly")
    Traceback (most recent call last):
    ...
    otel_reliability.errors.ConfigurationError: assembly.lingr: 'lingr' is not a setting; the
    nearest is linger.
    """
    types = {field.name: field.type for field in _infos(kind)}
    if isinstance(raw, kind):
        given: Mapping[str, Any] = {name: getattr(raw, name) for name in types}
    else:
        given = _section(raw, path)
        types = {field.path: field.type for field in own_fields(kind)}
    for name in given:
        if name not in types:
            raise ConfigurationError(
                _join(path, str(name)), name, "a setting", nearest(str(name), types)
            )
    if base is not None and not given:
        return base
    values: dict[str, Any] = {} if base is None else {name: getattr(base, name) for name in types}
    required = () if base is not None else (field.name for field in _infos(kind) if field.required)
    for name, value in {**dict.fromkeys(required), **given}.items():
        of = types[name]
        here = _join(path, name)
        values[name] = (
            load(of, value, base=values.get(name), path=here)
            if is_section(of)
            else _value(of, value, here)
        )
    try:
        return kind(**values)
    except ConfigurationError as error:  # fields that do not go together
        raise ConfigurationError(
            _join(path, error.field), error.value, error.allowed, error.remedy
        ) from None


def load_environment(
    kind: type[T],
    env: Mapping[str, str],
    prefix: str,
    *,
    base: T | None = None,
    others: Collection[str] = (),
) -> T:
    """Return a struct from environment variables: the path of a field in upper case behind
    `prefix`.

    An empty variable counts as absent, as OpenTelemetry specifies. A variable with the prefix that
    names no setting and is not among `others` raises `ConfigurationError`: it is a misspelt
    setting.
    """
    paths = {variable(field.path, prefix): field.path for field in fields(kind)}
    for name in sorted(env):
        if name.startswith(prefix) and name not in paths and name not in others:
            raise ConfigurationError(name, name, "a setting", nearest(name, paths))
    given: dict[str, Any] = {}
    for name, path in paths.items():
        if env.get(name, "").strip():
            *parts, last = path.split(".")
            functools.reduce(lambda section, part: section.setdefault(part, {}), parts, given)[
                last
            ] = env[name].strip()
    try:
        return load(kind, given, base=base)
    except ConfigurationError as error:
        name = variable(re.sub(r"\[.*", "", error.field), prefix)
        raise ConfigurationError(
            name if env.get(name) else error.field, error.value, error.allowed, error.remedy
        ) from None


def variable(path: str, prefix: str) -> str:
    """Return the environment variable of a setting.

    >>> variable("assembly.idle_timeout", "OTEL_RELIABILITY_")
    'OTEL_RELIABILITY_ASSEMBLY_IDLE_TIMEOUT'
    """
    return prefix + path.replace(".", "_").upper()


def nearest(word: str, words: Iterable[str]) -> str:
    """Return what might have been meant, as a remedy.

    >>> nearest("lingr", ["linger", "reopen"])
    'the nearest is linger'
    >>> nearest("wait", ["linger", "reopen"])
    'use one of linger, reopen'
    """
    known = list(words)
    found = difflib.get_close_matches(word, known, n=3)
    if not found and len(known) <= 12:
        return f"use one of {', '.join(known)}"
    found = found or difflib.get_close_matches(word, known, n=3, cutoff=0.0)
    return f"the nearest {'are' if len(found) > 1 else 'is'} {', '.join(found)}"


def shown(settings: Struct, without: str) -> str:
    """Return the `repr` of settings without a field that holds secrets."""
    given = (
        f"{name}={getattr(settings, name)!r}"
        for name in settings.__struct_fields__
        if name != without
    )
    return f"{type(settings).__name__}({', '.join(given)})"


# --- Types ----------------------------------------------------------------------------------------


def own_fields(kind: type[Struct]) -> Iterator[Field]:
    """Yield the fields of a struct that users can set: settings and sections."""
    for field in _infos(kind):
        if "internal" not in extra_of(field.type):
            default = None if field.default is msgspec.NODEFAULT else field.default
            if field.default_factory is not msgspec.NODEFAULT:
                default = field.default_factory()
            yield Field(field.name, field.type, default)


def fields(kind: type[Struct], path: str = "") -> Iterator[Field]:
    """Yield all settings of a struct that users can set, those of its sections with their paths."""
    for field in own_fields(kind):
        here = _join(path, field.path)
        if is_section(field.type):
            yield from fields(field.type, here)
        else:
            yield field._replace(path=here)


def is_section(kind: Any) -> bool:
    """Return whether a type is a struct, and not a single setting."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def extra_of(kind: Any) -> Mapping[str, Any]:
    """Return what a type carries for us: `units`, `allowed`, `remedy`, `secret`, `internal`."""
    return (cast("Meta", kind.__metadata__[0]).extra or {}) if get_origin(kind) is Annotated else {}


def allowed_by(kind: Any) -> str:
    """Return what values the type of a single value allows, in words.

    >>> allowed_by(Count), allowed_by(bool)
    ('a whole number >= 1', 'true or false')
    """
    plain, meta = get_args(kind) if get_origin(kind) is Annotated else (kind, Meta())
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    bounds = [
        f"{sign} {getattr(meta, name):g}"
        for name, sign in signs.items()
        if getattr(meta, name) is not None
    ]
    return (meta.extra or {}).get("allowed") or " ".join(
        [words.get(plain, "a list of names"), *bounds]
    )


def without_none(kind: Any) -> Any:
    """Return X of `X | None`, and any other type as it is."""
    return next(
        (one for one in get_args(kind) if type(None) in get_args(kind) and one is not type(None)),
        kind,
    )


@functools.cache
def _infos(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(kind)


# --- Values ---------------------------------------------------------------------------------------


def _value(kind: Any, raw: Any, path: str) -> Any:
    """Return what a value, or its text, means as a type other than a section."""
    inner = without_none(kind)
    if inner is not kind and (raw is None or raw == "null"):
        return None
    if is_section(inner):
        return load(inner, raw, path=path)
    match get_origin(inner), get_args(inner):
        case origin, (item, _) if origin is tuple:
            return tuple(
                _value(item, one, f"{path}[{index}]") for index, one in enumerate(_items(raw, path))
            )
        case origin, (_, item) if origin is Mapping:
            return {
                str(key): _value(item, one, f"{path}[{key}]")
                for key, one in _pairs(raw, path).items()
            }
        case _:
            return _leaf(inner, raw, path)


def _leaf(kind: Any, raw: Any, path: str) -> Any:
    extra = extra_of(kind)
    try:
        value = _amount(raw, extra["units"]) if isinstance(raw, str) and "units" in extra else raw
        return msgspec.convert(
            value.strip() if isinstance(value, str) else value, kind, strict=False
        )
    except ValueError:  # msgspec's is one
        shown = f"({len(str(raw))} characters, not shown)" if "secret" in extra else raw
        if get_origin(kind) is Literal:
            words = sorted(map(str, get_args(kind)))
            raise ConfigurationError(
                path, shown, f"one of {', '.join(words)}", nearest(str(raw), words)
            ) from None
        allowed = allowed_by(kind)
        raise ConfigurationError(
            path, shown, allowed, extra.get("remedy") or f"give {allowed}"
        ) from None


# --- Text -----------------------------------------------------------------------------------------


def seconds_of(text: str) -> float:
    """Return the seconds of a duration's text; raises ValueError if it is none.

    >>> seconds_of("1h30m"), seconds_of("2")
    (5400.0, 2.0)
    """
    return float(_amount(text, DURATION))


def _amount(text: str, units: Mapping[str, float]) -> float | str:
    """Return a number with units, such as `1h30m`; text without a unit stays text. Raises
    `ValueError`.
    """
    if re.fullmatch(r"\s*[\d._]+\s*", text):
        return text
    part = rf"(\d+(?:\.\d+)?)({'|'.join(units)})"
    if not re.fullmatch(rf"\s*(?:{part}\s*)+", text):
        raise ValueError(f"{text!r} has no unit of {', '.join(units)}")
    amount = sum(float(number) * units[unit] for number, unit in re.findall(part, text))
    return amount if units is DURATION else int(amount)


def _section(raw: Any, path: str) -> Mapping[str, Any]:
    found: object = _json(raw) if isinstance(raw, str) else {} if raw is None else raw
    if not isinstance(found, Mapping):
        raise ConfigurationError(
            path or "settings", raw, "a mapping of settings", "write it like {name: value}"
        )
    return cast("Mapping[str, Any]", found)


def _items(raw: Any, path: str) -> Sequence[Any]:
    """Return the items of a list, or of its text. A shell pattern may begin with a bracket: text
    that is no JSON is split.
    """
    items: object = raw
    if isinstance(raw, str):
        found = _json(raw)
        parts = [part.strip() for part in raw.split(",") if part.strip()]
        items = cast("list[object]", found) if isinstance(found, list) else parts
    if not isinstance(items, Sequence):
        raise ConfigurationError(path, raw, "a list", "write one, with brackets or dashes")
    return cast("Sequence[Any]", items)


def _pairs(raw: Any, path: str) -> Mapping[str, Any]:
    """Return the items of a mapping, or of its text. The last `=` of a pair divides it: values hold
    none, patterns may.
    """
    items = raw
    if isinstance(raw, str):
        items = _json(raw)
        if not isinstance(items, Mapping):
            pairs = [part.rpartition("=") for part in raw.split(",") if part.strip()]
            if not all(divider for _, divider, _ in pairs):
                raise ConfigurationError(
                    path, raw, "a mapping", "write it like name=value, name=value"
                )
            items = {key.strip(): value.strip() for key, _, value in pairs}
    if not isinstance(items, Mapping):
        raise ConfigurationError(path, raw, "a mapping", "write it like {name: value}")
    return cast("Mapping[str, Any]", items)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
