"""Settings as msgspec structs, read from mappings (a YAML file's), environment variables and code.

A value of the right type and text mean the same, because environment variables are text:

    type                   text
    duration, size         `10m`, `1h30m`, `250ms`; `64KiB`, `512MiB`
    number, text, word     as it is
    tuple[X, ...]          `a, b, c`, or a JSON list
    Mapping[str, X]        `a=1, b=2`, or a JSON object
    a struct               a JSON object

msgspec validates; this module translates text before, and errors after. An error names the field, the value and the remedy.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import itertools
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Meta

from otel_reliability.errors import ConfigurationError

T = TypeVar("T", bound=msgspec.Struct)

DURATION: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
SIZE: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

Seconds: TypeAlias = Annotated[
    float, Meta(ge=0, extra={"units": DURATION, "allowed": "a duration", "remedy": "write it like 10m, 1h30m or 250ms"})
]
Bytes: TypeAlias = Annotated[
    int, Meta(ge=0, extra={"units": SIZE, "allowed": "a size", "remedy": "write it like 64KiB or 512MiB"})
]
Count: TypeAlias = Annotated[int, Meta(ge=1)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Points: TypeAlias = Annotated[float, Meta(ge=0, le=100)]
Weight: TypeAlias = Annotated[float, Meta(ge=0)]
Text: TypeAlias = Annotated[
    str, Meta(pattern=r"\S", extra={"allowed": "text", "remedy": "quote it if it looks like a number"})
]
Secret: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^[!-~]+$", extra={"secret": True, "allowed": "text without spaces", "remedy": "remove the spaces"}),
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
InternalNames: TypeAlias = Annotated[tuple[str, ...], Meta(extra={"internal": True})]


class Field(NamedTuple):
    """One setting: its path (`assembly.linger`), its type as `msgspec.inspect` describes it, default and description."""

    path: str
    type: Any
    default: object
    description: str


# --- Loading ----------------------------------------------------------------------------------------------------------


def load(kind: type[T], raw: object, *, base: T | None = None, path: str = "") -> T:
    """Return a struct from a mapping (or an instance, which is then checked); what is absent is taken from `base`.

    Raises `ConfigurationError`, which names the field by its whole path below `path`.

    >>> from otel_reliability.config import AssemblySettings
    >>> load(AssemblySettings, {"linger": "500ms"}).linger
    0.5
    >>> load(AssemblySettings, {"lingr": 1}, path="assembly")
    Traceback (most recent call last):
    ...
    otel_reliability.errors.ConfigurationError: assembly.lingr: 'lingr' is not a setting; the nearest is linger.
    """
    given = _translated(_info(kind), raw, path)
    merged = given if base is None else _merged(_info(kind), _plain(base), given)
    try:
        return msgspec.convert(merged, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _refusal(kind, merged, str(error), path) from None


def load_environment(
    kind: type[T], env: Mapping[str, str], prefix: str, *, base: T | None = None, others: Collection[str] = ()
) -> T:
    """Return a struct from environment variables: the path of a field in upper case behind `prefix`.

    An empty variable counts as absent, as OpenTelemetry specifies. A variable with the prefix that names no setting and is
    not among `others` raises `ConfigurationError`: it is a misspelt setting.
    """
    paths = {variable(field.path, prefix): field.path for field in fields(kind)}
    for name in sorted(env):
        if name.startswith(prefix) and name not in paths and name not in others:
            raise ConfigurationError(name, name, "a setting", nearest(name, paths))
    given: dict[str, Any] = {}
    for name, path in paths.items():
        if env.get(name, "").strip():
            *parts, last = path.split(".")
            functools.reduce(lambda section, part: section.setdefault(part, {}), parts, given)[last] = env[name].strip()
    try:
        return load(kind, given, base=base)
    except ConfigurationError as error:
        name = variable(re.sub(r"\[.*", "", error.field), prefix)
        raise ConfigurationError(
            name if env.get(name) else error.field, error.value, error.allowed, error.remedy
        ) from None


def contradiction(field: str, allowed: str, remedy: str) -> ValueError:
    """Return what a struct's `__post_init__` raises about a field that does not go with the others."""
    return ValueError(f"{field}\n{allowed}\n{remedy}")


def checked(value: T, path: str = "") -> T:
    """Return the struct if all its fields are allowed: structs made in code are not validated by msgspec."""
    return load(type(value), value, path=path)


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


def seconds_of(text: str) -> float:
    """Return the seconds of a duration's text; raises ValueError if it is none.

    >>> seconds_of("1h30m"), seconds_of("2")
    (5400.0, 2.0)
    """
    try:
        return float(_amount(text, {"units": DURATION, "allowed": "a duration", "remedy": "write it like 10m"}, ""))
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


# --- What there is ----------------------------------------------------------------------------------------------------


def public_fields(kind: type[msgspec.Struct]) -> Iterator[Field]:
    """Yield the fields of a struct that users can set: settings and sections."""
    about = descriptions(kind)
    for field in _info(kind).fields:
        if not _is_internal(field):
            yield Field(field.name, field.type, _default(field), about.get(field.name, ""))


def fields(kind: type[msgspec.Struct], path: str = "") -> Iterator[Field]:
    """Yield all settings of a struct that users can set, those of its sections with their paths."""
    for field in public_fields(kind):
        here = _join(path, field.path)
        if isinstance(field.type, msgspec.inspect.StructType):
            yield from fields(field.type.cls, here)
        else:
            yield field._replace(path=here)


@functools.cache
def descriptions(kind: type[msgspec.Struct]) -> Mapping[str, str]:
    """Return the text below each field of a struct.

    >>> from otel_reliability.config import SessionSettings
    >>> descriptions(SessionSettings)["idle"]
    'Seconds without a run after which a session closes and is scored.'
    """
    tree = ast.parse(inspect.getsource(kind))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text).replace("\n", " ")
            case _:
                continue
    return found


def bounds_of(kind: Any) -> str:
    """Return what values a plain type allows, in words: "a whole number >= 1"."""
    inner = kind.type if isinstance(kind, msgspec.inspect.Metadata) else kind
    names = {"IntType": "a whole number", "FloatType": "a number", "StrType": "text", "BoolType": "true or false"}
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    bounds = [(sign, getattr(inner, name, None)) for name, sign in signs.items()]
    return " ".join(
        [names[type(inner).__name__], *(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)]
    )


def written(field: Field) -> str:
    """Return the default of a setting as a user would write it.

    >>> from otel_reliability.config import AssemblySettings
    >>> [written(field) for field in fields(AssemblySettings)][:2]
    ['2s', '10m']
    """
    value, units = field.default, extra_of(field.type).get("units")
    if units is None or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
    unit, size = max(((unit, size) for unit, size in units.items() if value % size == 0), key=lambda one: one[1])
    return f"{value / size:g}{unit}"


# --- Text before validation -------------------------------------------------------------------------------------------


def _translated(kind: Any, raw: Any, path: str) -> Any:
    """Return the value with text turned into what its type needs, as far as that is not plain conversion."""
    if isinstance(raw, msgspec.Struct):
        return _plain(raw)
    match kind:
        case msgspec.inspect.UnionType():
            return None if raw is None else _translated(kind.types[0], raw, path)
        case msgspec.inspect.StructType():
            return _section(kind, raw, path)
        case msgspec.inspect.VarTupleType():
            items = _items(raw, path)
            return [_translated(kind.item_type, item, f"{path}[{index}]") for index, item in enumerate(items)]
        case msgspec.inspect.DictType():
            pairs = _pairs(raw, path)
            return {str(key): _translated(kind.value_type, item, f"{path}[{key}]") for key, item in pairs.items()}
        case msgspec.inspect.Metadata() if isinstance(raw, str) and "units" in extra_of(kind):
            return _amount(raw, extra_of(kind), path)
        case _:
            return raw.strip() if isinstance(raw, str) else raw


def _section(kind: Any, raw: Any, path: str) -> dict[str, Any]:
    found: object = _json(raw) if isinstance(raw, str) else {} if raw is None else raw
    if not isinstance(found, Mapping):
        raise ConfigurationError(path or "settings", raw, "a mapping of settings", "write it like {name: value}")
    types = {field.name: field.type for field in kind.fields if not _is_internal(field)}
    given = cast("Mapping[str, Any]", found)
    for name in given:
        if name not in types:
            raise ConfigurationError(_join(path, str(name)), name, "a setting", nearest(str(name), types))
    return {name: _translated(types[name], value, _join(path, name)) for name, value in given.items()}


def _items(raw: Any, path: str) -> Sequence[Any]:
    """The items of a list, or of its text. A shell pattern may begin with a bracket, so text that is no JSON is split."""
    items: object = raw
    if isinstance(raw, str):
        found = _json(raw)
        items = (
            cast("list[object]", found)
            if isinstance(found, list)
            else [part.strip() for part in raw.split(",") if part.strip()]
        )
    if not isinstance(items, Sequence):
        raise ConfigurationError(path, raw, "a list", "write one, with brackets or dashes")
    return cast("Sequence[Any]", items)


def _pairs(raw: Any, path: str) -> Mapping[str, Any]:
    """The items of a mapping, or of its text. The last `=` of a pair divides it: values hold none, patterns may."""
    items = raw
    if isinstance(raw, str):
        items = _json(raw)
        if not isinstance(items, Mapping):
            pairs = [part.rpartition("=") for part in raw.split(",") if part.strip()]
            if not all(divider for _, divider, _ in pairs):
                raise ConfigurationError(path, raw, "a mapping", "write it like name=value, name=value")
            items = {key.strip(): value.strip() for key, _, value in pairs}
    if not isinstance(items, Mapping):
        raise ConfigurationError(path, raw, "a mapping", "write it like {name: value}")
    return cast("Mapping[str, Any]", items)


def _amount(text: str, extra: Mapping[str, Any], path: str) -> Any:
    """A number with units, such as `1h30m`; text without a unit stays for msgspec."""
    units = extra["units"]
    if re.fullmatch(r"\s*[\d._]+\s*", text):
        return text.strip()
    part = rf"(\d+(?:\.\d+)?)({'|'.join(units)})"
    if not re.fullmatch(rf"\s*(?:{part}\s*)+", text):
        raise ConfigurationError(path, text, extra["allowed"], extra["remedy"])
    amount = sum(float(number) * units[unit] for number, unit in re.findall(part, text))
    return amount if units is DURATION else int(amount)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


# --- Errors after validation ------------------------------------------------------------------------------------------


def _refusal(kind: type[msgspec.Struct], given: Any, message: str, path: str) -> ConfigurationError:
    """Translate "Expected `int` >= 1 - at `$.windows[1].last`", or what `contradiction` wrote."""
    what, _, place = message.partition(" - at `$")
    where = place.removesuffix("`").lstrip(".")
    if "\n" in what:
        name, allowed, remedy = what.split("\n")
        value, _ = _at(_info(kind), given, _join(where, name))
        return ConfigurationError(_join(path, _join(where, name)), value, allowed, remedy)
    value, found = _at(_info(kind), given, where)
    if isinstance(found, msgspec.inspect.LiteralType):
        words = [str(word) for word in found.values]
        return ConfigurationError(_join(path, where), value, f"one of {', '.join(words)}", nearest(str(value), words))
    extra = extra_of(found)
    shown = f"({len(str(value))} characters, not shown)" if "secret" in extra else value
    allowed = extra.get("allowed") or _in_words(what)
    return ConfigurationError(_join(path, where), shown, allowed, extra.get("remedy") or f"give {allowed}")


def _in_words(what: str) -> str:
    """Return what msgspec expected, in words: "Expected `int` >= 1" is "a whole number >= 1"."""
    text = re.sub(r"^Expected |, got .*$| matching regex.*$", "", what)
    for name, word in (("int", "a whole number"), ("float", "a number"), ("str", "text"), ("bool", "true or false")):
        text = text.replace(f"`{name}`", word)
    return text.replace("`", "").replace(".0", "")


def extra_of(kind: Any) -> Mapping[str, Any]:
    """Return what a type carries for us: `units`, `allowed`, `remedy`, `secret`, `internal`."""
    return cast("Any", kind).extra or {} if isinstance(kind, msgspec.inspect.Metadata) else {}


def _at(kind: Any, value: Any, where: str) -> tuple[Any, Any]:
    """The value and its type at a path such as `windows[1].last`."""
    for part in re.findall(r"[^.\[\]]+", where):
        if isinstance(kind, msgspec.inspect.UnionType):
            kind = kind.types[0]
        if isinstance(kind, msgspec.inspect.StructType):
            kind = next(field.type for field in kind.fields if field.name == part)
            value = cast("Mapping[str, Any]", value).get(part)
        elif isinstance(kind, msgspec.inspect.VarTupleType):
            kind, value = kind.item_type, value[int(part)]
        elif isinstance(kind, msgspec.inspect.DictType):  # msgspec writes `[...]` for any key
            kind = kind.value_type
    return value, kind.types[0] if isinstance(kind, msgspec.inspect.UnionType) else kind


# --- Small parts ------------------------------------------------------------------------------------------------------


@functools.cache
def _info(kind: type[msgspec.Struct]) -> Any:
    return msgspec.inspect.type_info(kind)


def _is_internal(field: Any) -> bool:
    return "internal" in extra_of(field.type)


def _default(field: Any) -> object:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return None if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _plain(value: Any) -> Any:
    """Structs as mappings, at any depth; everything else as it is."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    return value


def _merged(kind: Any, base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Sections are merged field by field; lists and mappings are replaced. Internal numbers derive from what is merged."""
    types = {field.name: field.type for field in kind.fields}
    sections = {name for name in over if isinstance(types[name], msgspec.inspect.StructType)}
    if over:
        base = {field.name: base[field.name] for field in kind.fields if not _is_internal(field)}
    return {**base, **over, **{name: _merged(types[name], base[name], over[name]) for name in sections}}


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
