"""An answer of a convention → the template of many spans, into which the parts that are each span's own are put."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast

from otel_reliability.conventions.base import Answer, Own
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.conventions.mapping import ToolNames
from otel_reliability.model.span import STATUS_ERROR, Call, InvocationFacts, Kind, ModelFacts, Tokens, ToolFacts

RESULT: Final = Call._fields.index("result")
Parts: TypeAlias = list[Any]
"""The fields of facts in a row: those of a model call and of an invocation with input and output tokens in place of `tokens`,
those of its one call for a tool, the facts themselves where a convention reads them as a whole."""

_tuple: Final[Callable[..., Any]] = tuple.__new__  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
"""Makes a named tuple from a tuple, without the call in Python that its class would cost."""
_MODEL_TOKENS: Final = ModelFacts._fields.index("tokens")
_MODEL_CALLS: Final = ModelFacts._fields.index("calls") + 1
_INVOCATION_TOKENS: Final = InvocationFacts._fields.index("tokens")


class Template(NamedTuple):
    """The common part of the spans of one answer.

    `build` None: `facts` are complete. Otherwise they are parts; `own` says which of them are read from the span (place,
    reader, keys, whether the reader gets all values), and `build` makes facts of them.
    """

    kind: Kind
    failed: bool
    facts: Any
    own: tuple[tuple[int, Callable[..., Any], tuple[str, ...], bool], ...] = ()
    build: Callable[[Parts], Any] | None = None
    session: Own | str | None = None
    fails_with_call: bool = False


class Templates:
    """Makes templates; hashes the arguments and results of calls, and applies the user's rules on tool names."""

    def __init__(self, hasher: Hasher, names: ToolNames) -> None:
        self._hasher, self._names = hasher, names

    def made(self, answer: Answer, keys: AbstractSet[str], status: int) -> Template:
        """The template for spans of this answer that have these keys."""
        kind, facts, failed, session, fails_with_call = answer
        parts, build = self._parts(facts)
        own: list[tuple[int, Callable[..., Any], tuple[str, ...], bool]] = []
        for place, part in enumerate(parts):
            if isinstance(part, Own):
                there = part.keys if part.joined else tuple(key for key in part.keys if key in keys)
                if keys.isdisjoint(there):
                    parts[place] = part.reader(*[None] * len(there)) if part.joined else None
                else:
                    own.append((place, part.reader, there, part.joined))
        if isinstance(session, Own):
            there = session.keys if session.joined else tuple(key for key in session.keys if key in keys)
            session = None if keys.isdisjoint(there) else session._replace(keys=there)
        failed = status == STATUS_ERROR if failed is None else failed
        if build is not None and not own:
            facts, build = build(parts), None
            failed = failed or (fails_with_call and self._hasher.is_soft_error(parts[RESULT]))
        return Template(kind, failed, facts if build is None else parts, tuple(own), build, session, fails_with_call)

    def filled(self, template: Template, raw: Mapping[str, Any], value: Callable[[Any], Any]) -> tuple[Any, bool]:
        """The facts of a span of a template that has parts of its own, and whether it failed; `value` decodes what is raw."""
        parts = cast("Parts", template.facts.copy())
        for place, reader, keys, joined in template.own:
            if len(keys) == 1:
                parts[place] = reader(value(raw[keys[0]]))
            elif joined:
                parts[place] = reader(*[value(raw[key]) if key in raw else None for key in keys])
            else:
                parts[place] = next((found for key in keys if (found := reader(value(raw[key]))) is not None), None)
        failed = template.failed or (template.fails_with_call and self._hasher.is_soft_error(parts[RESULT]))
        return template.build(parts) if template.build else None, failed

    def _parts(self, facts: Any) -> tuple[Parts, Callable[[Parts], Any] | None]:
        """The parts of facts, and what makes facts of them again; None where they stay as they are."""
        match facts:
            case ModelFacts():
                parts = _flat(facts, _MODEL_TOKENS)
                if isinstance(facts.calls, Own):
                    parts[_MODEL_CALLS] = self._once(facts.calls, self._hashed)
                return parts, self.model
            case InvocationFacts():
                return _flat(facts, _INVOCATION_TOKENS), self.invocation
            case ToolFacts(calls=(call,)):
                name: Any = call.name
                reads = isinstance(name, Own) or (name is not None and self._hasher.reads_arguments(name))
                return list(call), self.tool_by_arguments if reads else self.tool
            case Own():
                return [self._once(facts, self.complete)], _whole
            case _:
                return [], None

    def model(self, parts: Parts) -> ModelFacts:
        """Facts of a model call."""
        model, request_model, given, output, asked, messages, calls, limit, cost, response, *marks = parts
        if type(given) is Tokens:
            given, output = given
        if calls:
            renamed = self._names.renamed(calls)
            asked = asked or bool(calls)
            if renamed != calls:
                calls, asked = renamed, bool(renamed)
        return _tuple(
            ModelFacts,
            (
                model, request_model, _tuple(Tokens, (given, output)), asked, messages, calls or (), limit, cost, response,
                *marks,
            ),
        )  # fmt: skip

    def invocation(self, parts: Parts) -> InvocationFacts:
        """Facts of an agent, a workflow or a chain."""
        name, weak, fallback, at_root, given, output, limited, finish, call, *marks = parts
        if type(given) is Tokens:
            given, output = given
        tokens = None if given is None and output is None else _tuple(Tokens, (given, output))
        if call is not None:
            call = next(iter(self._names.renamed((call,))), None)
        return _tuple(InvocationFacts, (name, weak, fallback, at_root, tokens, limited, finish, call, *marks))

    def tool(self, parts: Parts) -> ToolFacts:
        """Facts of a tool span of one call."""
        name, call_id, arguments, failed, result, _ = parts
        call = self._hasher.call(name, call_id, arguments, result, failed=failed)
        return _tuple(ToolFacts, (self._names.renamed((call,)), False))

    def tool_by_arguments(self, parts: Parts) -> ToolFacts:
        """Facts of a tool span whose arguments say what the call changes: the native extension does not read them."""
        return self.tool(parts)

    def _once(self, part: Own, finish: Callable[[Any], Any]) -> Own:
        """The part with its calls hashed, once for all equal texts."""
        reader = part.reader

        def made(*given: Any) -> Any:
            return finish(reader(*given))

        return part._replace(reader=partial(self._hasher.once, made))

    def complete(self, facts: Any) -> Any:
        """Facts that a convention read as a whole."""
        if isinstance(facts, ToolFacts):
            return facts._replace(calls=self._names.renamed(self._hashed(facts.calls)))
        if isinstance(facts, ModelFacts) and facts.calls:
            facts = facts._replace(calls=self._hashed(facts.calls))
        parts, build = self._parts(facts)
        return facts if build is None else build(parts)

    def _hashed(self, calls: tuple[Any, ...]) -> tuple[Call, ...]:
        hasher = self._hasher
        return tuple([hasher.call(call[0], call[1], call[2], call[4], failed=call[3]) for call in calls])


def _whole(parts: Parts) -> Any:
    return parts[0]


def _flat(facts: tuple[Any, ...], place: int) -> Parts:
    """The fields of facts, their tokens as two: one `Own` for both stands in the place of the first."""
    tokens = facts[place]
    pair = tokens if isinstance(tokens, Tokens) else (tokens, None)
    return [*facts[:place], *pair, *facts[place + 1 :]]
