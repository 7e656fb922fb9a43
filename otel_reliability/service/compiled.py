"""Requests read by the compiled reader, where it is installed (`otel-reliability-native`).

It knows the wire; what a span is, the conventions say: once for all spans of the same keys and the same telling values. It
answers for what every encoder writes, and leaves all other requests to the decoders in Python, which tests compare it with.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from google.protobuf.message import DecodeError

from otel_reliability.assembly.blocks import Block, Blocks
from otel_reliability.assembly.rows import is_row, more_of
from otel_reliability.config import Settings
from otel_reliability.conventions import stencils, values
from otel_reliability.conventions.by_name import BEGINNINGS
from otel_reliability.conventions.openllmetry import CREW
from otel_reliability.conventions.plans import PLAN_BYTES
from otel_reliability.conventions.reader import Reader
from otel_reliability.conventions.room import Room
from otel_reliability.conventions.stencils import STENCIL_BYTES, Stencils
from otel_reliability.model.attributes import LazyAttributes
from otel_reliability.model.span import (
    STATUS_ERROR,
    STATUS_UNSET,
    AgentSpan,
    Call,
    Facts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawSpan,
    Resource,
    Session,
    Tokens,
    ToolFacts,
)
from otel_reliability.native import load as load_module
from otel_reliability.service.ordinary import Ordinary
from otel_reliability.sources import otlp_guard
from otel_reliability.sources.memo import Memo
from otel_reliability.sources.otlp_fast import NeedsFullSchema, resource_of, scope_of, unusual
from otel_reliability.sources.otlp_places import RUN

MODULE: Final = "otel_reliability_native"
_ATTRIBUTES: Final = RawSpan._fields.index("attributes")
_SCOPE_BYTES: Final = 256


def load() -> Any:
    """The compiled module, None where it is not installed or does not fit."""
    return load_module(MODULE)


class Compiled:
    """Reads requests by the conventions of a reader. `native` is the compiled module."""

    def __init__(self, native: Any, settings: Settings, reader: Reader, ordinary: Ordinary) -> None:
        self._native, self._reader, self._ordinary = native, reader, ordinary
        self._layouts: dict[str, dict[tuple[bytes, ...], Any]] = {}
        self._room = Room(self._forget)
        self._what = {Kind.MODEL: native.MODEL, Kind.TOOL: native.TOOL, Kind.AGENT: native.AGENT, None: native.ASK}
        self._scanner = native.Scanner(
            group=self._group, unusual=_unusual, span=AgentSpan, tokens=Tokens, model=ModelFacts, agent=InvocationFacts,
            tool=ToolFacts, call=Call, block=Block, mixed=Block.mixed, kind=Kind.OTHER, text=values.text,
            name=values.name, identifier=values.identifier, hashed=self._hashed, session=Session,
            rank=stencils.CONVERSATION_RANK,
            names=frozenset(map(str.encode, BEGINNINGS)), end=RUN.encode(), never=CREW.encode(),
        )  # fmt: skip

    def read(self, body: bytes) -> Blocks | None:
        """The spans of a sound request in protobuf, None where the decoders in Python must say what it is."""
        otlp_guard.check(body)
        try:
            found = self._scanner.scan(body, partial(self._undecoded, Memo()))
        except (DecodeError, NeedsFullSchema, UnicodeDecodeError):
            return None
        if found is None:
            return None
        blocks, rest, mixed = found
        return Blocks(blocks, rest, mixed=mixed)

    def _undecoded(self, memo: Memo, parts: tuple[Any, ...]) -> AgentSpan:
        attributes = LazyAttributes(parts[_ATTRIBUTES], memo)
        return self._reader.read(RawSpan._make((*parts[:_ATTRIBUTES], attributes, *parts[_ATTRIBUTES + 1 :])))

    def _group(self, resource: bytes, scope: bytes) -> Any:
        whole, (name, version) = resource_of((resource,)), scope_of((scope,))
        told, _ = self._reader.plan(name, ())
        layouts = self._layouts.get(name)
        if layouts is None:
            self._room.take(_SCOPE_BYTES + len(name))
            layouts = self._layouts[name] = {}
        layout = partial(self._layout, name)
        return self._native.Group(whole, Resource(*whole[:3]), name, version, told, layout, layouts)

    def _layout(self, scope: str, keys: tuple[str, ...]) -> Any:
        self._room.take(PLAN_BYTES + 2 * sum(map(len, keys)))
        if len(set(keys)) < len(keys):
            return self._native.Layout(keys)
        if self._ordinary.passes(scope, keys):
            return self._native.Layout(keys, is_place=True)
        _, plan = self._reader.plan(scope, keys)
        if plan.stencils is None:
            return self._native.Layout(keys)
        places = {key: at for at, key in enumerate(keys)}
        shared = tuple(places[key] for key in plan.stencils.shared)
        own = tuple(places.get(key, -1) for key in stencils.OWN)
        return self._native.Layout(keys, shared, own, partial(self._learnt, scope, plan.stencils))

    def _learnt(self, scope: str, known: Stencils, shared: tuple[bytes, ...], failed: bool) -> tuple[Any, ...]:
        """What to make of spans of these values, and the stencil that tells it."""
        self._room.take(STENCIL_BYTES + sum(map(len, shared)))
        attributes = LazyAttributes(dict(zip(known.shared, shared, strict=True)), Memo())
        status = STATUS_ERROR if failed else STATUS_UNSET
        whole = RawSpan(b"", b"", None, "", 0, 0, 0, status, None, attributes, (), (), scope, "", Resource())
        kind, fails, facts = known.stencil(whole)
        what = self._what.get(kind, self._native.PLAIN)
        if isinstance(facts, ToolFacts) and not facts.calls:
            what = self._native.PLAIN
        return what, kind, fails, facts, _row(kind, facts)

    def _hashed(self, call: Call, call_id: str | None, arguments: str | None, result: str | None) -> Call:
        return self._reader.hasher.call(call.name, call_id, arguments, result, failed=call.failed)

    def _forget(self) -> None:
        self._layouts.clear()
        self._scanner.forget()


def _row(kind: Kind | None, facts: Facts | None) -> tuple[Any, ...] | None:
    """What the rows of such calls have in common: of a model call the models, whether it asked for tools, and what few tell; of a
    tool call the call. None: they are no rows.
    """
    if kind is Kind.MODEL and isinstance(facts, ModelFacts):
        return facts.model, facts.request_model, facts.asked_for_tools, more_of(facts)
    return facts.calls[0] if kind is Kind.TOOL and isinstance(facts, ToolFacts) and is_row(facts) else None


def _unusual(states: list[bytes], events: list[bytes], links: list[bytes]) -> Any:
    return unusual(states, events, links, Memo())
