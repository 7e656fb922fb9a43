"""Everything but the windows as bytes, and back: the objects themselves, for a process of the same build.

They are pickled, with these exceptions: settings and what is made of nothing else are those of the process that reads; the
engine is its engine. Only classes of this package and a few containers are ever made, whatever the bytes say. With them
stands the shape of every class: where one is another now, the bytes are of another version, and are not used.
"""

from __future__ import annotations

import importlib
import io
import itertools
import pickle
import sys
import types
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from otel_reliability.assembly.assemble import Assemble
from otel_reliability.config import Settings
from otel_reliability.engine import Engine
from otel_reliability.model import packed

PACKAGE: Final = "otel_reliability"
_PROTOCOL: Final = 5
_ALLOWED: Final[Mapping[tuple[str, str], Any]] = {
    ("collections", "Counter"): Counter,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "deque"): deque,
    ("array", "array"): array,
    ("array", "_array_reconstructor"): None,
    ("itertools", "count"): itertools.count,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "bytearray"): bytearray,
}


_PACKED: Final = packed.__name__
_LAYOUT: Final = f"{packed.HEAD.format} {packed.RECORD.format}"
_FOREIGN: Final = (pickle.UnpicklingError, AttributeError, ImportError, LookupError, TypeError, ValueError, EOFError)
"""What goes wrong where bytes tell of objects that are made otherwise now."""


class OtherVersion(Exception):
    """The bytes were written by a build whose classes look otherwise."""


def shapes() -> dict[str, str]:
    """What every class of this package that is loaded looks like, by its name, and how calls are packed."""
    found: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE:
            own = (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name)
            found.update((f"{name}:{one.__qualname__}", shape(one)) for one in own)
    return {**found, _PACKED: _LAYOUT}


def shape(kind: type[Any]) -> str:
    """The names of what an object of a class holds.

    >>> from otel_reliability.model.span import Tokens
    >>> shape(Tokens)
    'input output'
    """
    declared: Any = kind.__dict__.get("_fields" if issubclass(kind, tuple) else "__slots__", ())
    begin = kind.__dict__.get("__init__")
    set_at_first = begin.__code__.co_names if isinstance(begin, types.FunctionType) else ()
    named = cast("tuple[str, ...]", declared) if isinstance(declared, tuple) else (str(declared),)
    return " ".join((*named, *set_at_first))


def write(state: object, engine: Engine) -> bytes:
    """The state as bytes."""
    buffer = io.BytesIO()
    _Pickler(buffer, engine).dump(state)
    return buffer.getvalue()


def read(data: bytes, engine: Engine, known: Mapping[str, str]) -> Any:
    """The state that `write` was given. `known` are the shapes of then. Raises `OtherVersion`."""
    if known.get(_PACKED) != _LAYOUT:
        raise OtherVersion("calls are packed otherwise now")
    try:
        return _Unpickler(io.BytesIO(data), engine, known).load()
    except _FOREIGN as error:
        raise OtherVersion(f"{type(error).__name__} while reading it") from None


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, engine: Engine) -> None:
        super().__init__(file, _PROTOCOL)
        self._settings = {id(one): path for path, one in _parts(engine.settings, "")}

    def reducer_override(self, obj: Any) -> Any:
        kind = cast("type[Any]", type(obj))
        special = _REDUCERS.get(kind)
        if special is not None:
            return special(obj)
        path = self._settings.get(id(obj))
        return NotImplemented if path is None else (_settings, (path,))


def _of_method(method: types.MethodType) -> Any:
    return (_bound, (method.__self__, method.__func__.__name__))


def _of_count(counter: itertools.count[int]) -> Any:
    return (itertools.count, (int(repr(counter)[len("count(") : -1]),))


def _of_engine(engine: Engine) -> Any:
    return (_engine, ())


def _of_assemble(assemble: Assemble) -> Any:
    return (_assemble, ())


_REDUCERS: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    types.MethodType: _of_method,
    itertools.count: _of_count,
    Engine: _of_engine,
    Assemble: _of_assemble,
}


def _bound(owner: object, name: str) -> Any:
    """A method of an object of ours. The name alone would let bytes reach whatever hangs on an object."""
    function = getattr(type(owner), name, None)
    if not isinstance(function, types.FunctionType) or not function.__module__.startswith(PACKAGE):
        raise pickle.UnpicklingError(f"{name} is no method")
    return types.MethodType(function, owner)


def _engine() -> None: ...


def _assemble() -> None: ...


def _settings(path: str) -> None: ...


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, engine: Engine, known: Mapping[str, str]) -> None:
        super().__init__(file)
        self._known = known
        self._own: dict[str, Callable[..., Any]] = {
            "_bound": _bound,
            "_engine": lambda: engine,
            "_assemble": lambda: Assemble(engine.settings),
            "_settings": dict(_parts(engine.settings, "")).__getitem__,
        }

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name == __name__ and global_name in self._own:
            return self._own[global_name]
        if (module_name, global_name) in _ALLOWED:
            return super().find_class(module_name, global_name)
        kind: Any = None
        if module_name.startswith(f"{PACKAGE}."):
            kind = getattr(importlib.import_module(module_name), global_name, None)
        if not isinstance(kind, type) or kind.__module__ != module_name:
            raise OtherVersion(f"{module_name}.{global_name} is not known here")
        if self._known.get(f"{module_name}:{global_name}") != shape(cast("type[Any]", kind)):
            raise OtherVersion(f"{global_name} looks otherwise now")
        return cast("Any", kind)


def _parts(settings: object, path: str) -> Iterator[tuple[str, object]]:
    """All settings that have settings below them, by their path."""
    yield path, settings
    for field in fields(cast("Settings", settings)):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from _parts(value, f"{path}.{field.name}")
