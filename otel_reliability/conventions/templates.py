"""Templates: the answers of conventions, as far as the spans that share them are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.config import ToolSettings
from otel_reliability.conventions import (
    values,
)
from otel_reliability.conventions.base import (
    Answer,
    Own,
    itself,
)
from otel_reliability.conventions.hashing import HashedResult, Hasher
from otel_reliability.model.span import (
    STATUS_ERROR,
    Call,
    InvocationFacts,
    Kind,
    ModelFacts,
    Tokens,
    ToolFacts,
    named_tuple,
)

MAX_TOOL_NAME: Final = 256
MAX_TOOL_NAMES: Final = 65_536
MAX_HASHING_READERS: Final = 256

RawValues: TypeAlias = Mapping[str, Any]
"""Attributes by key: values, or their undecoded bytes."""
Parts: TypeAlias = list[Any]
"""The fields of facts in a row: those of a model call and of an invocation with input and output
tokens in place of `tokens`, those of its one call for a tool, with the reported name of the tool in
place of `effect`; the facts themselves where a convention reads them as a whole.
"""

_RESULT: Final = Call._fields.index("result")
_MODEL_TOKENS: Final = ModelFacts._fields.index("tokens")
_MODEL_CALLS: Final = ModelFacts._fields.index("calls") + 1
_INVOCATION_TOKENS: Final = InvocationFacts._fields.index("tokens")
_INVOCATION_CALL: Final = InvocationFacts._fields.index("call") + 1


class Template(NamedTuple):
    """The common part of the spans of one answer.

    `build` None: `facts` are complete. Otherwise they are parts, and `build` makes facts of them
    with those that are read from each span: `single` ones from the value of one key, `others` as
    their `Own` says. `has_result`: the span failed also where the result of its call is a failure
    to the user.
    """

    kind: Kind
    failed: bool
    facts: Any
    single: tuple[tuple[int, Callable[[Any], Any], str], ...] = ()
    others: tuple[tuple[int, Own], ...] = ()
    build: Callable[[Parts], Any] | None = None
    session: Own | str | None = None
    has_result: bool = False


class Templates:
    """Makes templates and facts; calls are hashed, and named by the user's rules (`tools.ignore`,
    `tools.rename`).
    """

    own = Own

    def __init__(self, hasher: Hasher, settings: ToolSettings) -> None:
        self._hasher = hasher
        self._ignored, self._renamed = settings.ignore, dict(settings.rename)
        self._names: dict[str, str | None] = {}
        hashing = _hashed(itself, hasher.arguments), _hashed(itself, hasher.result)
        self.readers = values.integer, values.text, values.identifier, itself, *hashing
        """The readers that the native extension knows, in the order in which it knows them."""

    def template(self, answer: Answer, keys: AbstractSet[str], status: int) -> Template:
        kind, facts, failed, session, fails_with_call = answer
        parts, build = self._parts(facts)
        single: list[tuple[int, Callable[[Any], Any], str]] = []
        others: list[tuple[int, Own]] = []
        for place, part in enumerate(parts):
            if isinstance(part, Own):
                own = part.within(keys)
                if keys.isdisjoint(own.keys):
                    parts[place] = own.reader(*[None] * len(own.keys)) if own.joined else None
                elif len(own.keys) != 1 or own.once:
                    others.append((place, own))
                else:
                    single.append((place, own.reader, own.keys[0]))
        if isinstance(session, Own):
            session = session.within(keys)
            session = None if keys.isdisjoint(session.keys) else session
        failed = status == STATUS_ERROR if failed is None else failed
        if build is not None and not single and not others:
            failed = failed or (fails_with_call and _is_soft_error(parts[_RESULT]))
            facts = build(parts)
            build = None
        return Template(
            kind,
            failed,
            facts if build is None else parts,
            tuple(single),
            tuple(others),
            build,
            session,
            fails_with_call and build is not None,
        )

    def filled(
        self, template: Template, raw: RawValues, value: Callable[[Any], Any]
    ) -> tuple[Any, bool]:
        """Return the facts of a span of a template with parts of its own, and whether it failed;
        `value` decodes what is raw.
        """
        parts = template.facts.copy()
        for place, read, key in template.single:
            parts[place] = read(value(raw[key]))
        for place, own in template.others:
            given = tuple(map(raw.get, own.keys))
            parts[place] = (
                self._hasher.once(own, given, value) if own.once else own.of(given, value)
            )
        failed = template.failed or (template.has_result and _is_soft_error(parts[_RESULT]))
        return template.build(parts) if template.build is not None else None, failed

    def complete(self, facts: Any) -> Any:
        """Return facts that a convention read as a whole, with their calls hashed."""
        if isinstance(facts, ToolFacts):
            return ToolFacts(self._calls(facts.calls), facts.finish)
        if isinstance(facts, ModelFacts):
            calls = self._calls(facts.calls) if facts.calls else None
            return self.model(_flat(facts._replace(calls=calls), _MODEL_TOKENS))
        parts, build = self._parts(facts)
        return facts if build is None else build(parts)

    def _parts(self, facts: Any) -> tuple[Parts, Callable[[Parts], Any] | None]:
        """Return the parts of facts, and what makes facts of them again; None where they stay as
        they are.
        """
        match facts:
            case ModelFacts():
                parts = _flat(facts, _MODEL_TOKENS)
                parts[_MODEL_CALLS] = (
                    _once(facts.calls, self._calls_of_messages) if facts.calls else None
                )
                return parts, self.model
            case InvocationFacts():
                parts = _flat(facts, _INVOCATION_TOKENS)
                if facts.call is not None:
                    parts[_INVOCATION_CALL] = next(iter(self._calls((facts.call,))), None)
                return parts, self.invocation
            case ToolFacts(calls=(call,)):
                reported, call_id, arguments, failed, result, _ = call
                name = None if reported is None else self._name(reported)
                arguments = _once(arguments, self._hasher.arguments_of(reported))
                return [
                    name,
                    call_id,
                    arguments,
                    failed,
                    _once(result, self._hasher.result),
                    reported,
                ], self.tool
            case Own():
                return [_once(facts, self.complete)], itemgetter(0)
            case _:
                return [], None

    def model(self, parts: Parts) -> ModelFacts:
        """Return the facts of a model call; its calls are None where it asked for none, empty where
        all are ignored.
        """
        (
            model,
            request_model,
            given,
            output,
            asked,
            messages,
            calls,
            limit,
            cost,
            response,
            *marks,
        ) = parts
        if type(given) is Tokens:
            given, output = given
        if calls is not None:
            asked = bool(calls)
        return named_tuple(
            ModelFacts,
            (
                model,
                request_model,
                named_tuple(Tokens, (given, output)),
                asked,
                messages,
                calls or (),
                limit,
                cost,
                response,
                *marks,
            ),
        )

    def invocation(self, parts: Parts) -> InvocationFacts:
        name, weak, fallback, at_root, given, output, *others = parts
        if type(given) is Tokens:
            given, output = given
        tokens = None if given is None and output is None else named_tuple(Tokens, (given, output))
        return named_tuple(InvocationFacts, (name, weak, fallback, at_root, tokens, *others))

    def tool(self, parts: Parts) -> ToolFacts:
        """Return the facts of a tool span of one call."""
        name, call_id, arguments, failed, result, reported = parts
        call = self._hasher.hashed_call(reported, call_id, arguments, result, failed=failed)
        if name != reported:
            return ToolFacts(() if name is None else (call._replace(name=name),))
        return named_tuple(ToolFacts, ((call,), False))

    def _calls(self, calls: Iterable[Any]) -> tuple[Call, ...]:
        """Return reported calls hashed, by the names that they have here, without those that are
        ignored.
        """
        found: list[Call] = []
        for name, call_id, arguments, failed, result, _ in calls:
            known = None if name is None else self._name(name)
            if name is None or known is not None:
                call = self._hasher.call(name, call_id, arguments, result, failed=failed)
                found.append(call if known == name else call._replace(name=known))
        return tuple(found)

    def _calls_of_messages(self, calls: tuple[Any, ...]) -> tuple[Call, ...] | None:
        return self._calls(calls) if calls else None

    def _name(self, name: str) -> str | None:
        """Return what a tool is called here; None where it is no step."""
        if name in self._names:
            return self._names[name]
        found: str | None = name if len(name) <= MAX_TOOL_NAME else name[: MAX_TOOL_NAME - 1] + "…"
        if any(fnmatchcase(name, pattern) for pattern in self._ignored):
            found = None
        else:
            found = next(
                (new for old, new in self._renamed.items() if fnmatchcase(name, old)), found
            )
        if len(self._names) < MAX_TOOL_NAMES:
            self._names[name] = found
        return found


def _once(part: Any, finish: Callable[[Any], Any]) -> Any:
    """Return a part with what makes hashes of it, once for equal values; of a value that is known
    already, the hashes.
    """
    if isinstance(part, Own):
        return part._replace(reader=_hashed(part.reader, finish), once=True)
    return None if part is None else finish(part)


@lru_cache(MAX_HASHING_READERS)
def _hashed(read: Callable[..., Any], finish: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a reader that finishes what another one reads; the same one, so that equal values are
    known in every template.
    """

    def hashed(*given: Any) -> Any:
        found = read(*given)
        return None if found is None else finish(found)

    return hashed


def _is_soft_error(result: HashedResult | None) -> bool:
    return result is not None and result.is_soft_error


def _flat(facts: tuple[Any, ...], place: int) -> Parts:
    """Return the fields of facts, their tokens as two: one `Own` for both stands in the place of
    the first.
    """
    tokens = facts[place]
    pair = tokens if isinstance(tokens, Tokens) else (tokens, None)
    return [*facts[:place], *pair, *facts[place + 1 :]]
