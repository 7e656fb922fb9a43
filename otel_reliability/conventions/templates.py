"""Templates: the answers of conventions, as far as the spans that share them are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from operator import itemgetter
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

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
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.span import (
    STATUS_ERROR,
    Call,
    Facts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawEvent,
    Tokens,
    ToolFacts,
)

MAX_TOOL_NAME: Final = 256
MAX_TOOL_NAMES: Final = 65_536
MAX_HASHING_READERS: Final = 256

RawValues: TypeAlias = Mapping[str, Any]
"""Attributes by key: values, or their undecoded bytes."""
Parts: TypeAlias = dict[str, Any]
"""The fields of facts by their names: those of a model call and of an invocation, with `input` and
`output` in place of `tokens` unless one `Own` reads both; those of its one call for a tool, with
the name that was `reported` in place of `effect`; `facts` alone where a convention reads them as a
whole.
"""
Build: TypeAlias = Callable[[Parts], Facts | None]
"""Makes facts of parts that are all known."""
Reading: TypeAlias = Callable[..., Any]
"""A function that reads values of attributes, or finishes what another one read."""


_NO_TOKENS: Final = Tokens()


class Template(Struct, frozen=True):
    """The common part of the spans of one answer.

    `facts` are complete where `build` is None. Otherwise they are parts, and `build` makes facts of
    them with those that are read from each span: `single` ones from the value of one key, `others`
    as their `Own` says. `has_result`: the span failed also where the result of its call is a
    failure to the user.
    """

    kind: Kind
    failed: bool
    facts: Facts | Parts | None
    single: tuple[tuple[str, Callable[[Any], Any], str], ...] = ()
    others: tuple[tuple[str, Own], ...] = ()
    build: Build | None = None
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
        self._hashing = Remembered[tuple[Reading, Reading], Reading](MAX_HASHING_READERS)
        self._remembered = Remembered[Reading, Reading](MAX_HASHING_READERS)
        hashing = self._hashed(itself, hasher.arguments), self._hashed(itself, hasher.result)
        self.readers = values.integer, values.text, values.identifier, itself, *hashing
        """The readers that the native extension knows, in the order in which it knows them."""

    def template(self, answer: Answer, keys: AbstractSet[str], status: int) -> Template:
        parts, build = self._parts(answer.facts)
        single: list[tuple[str, Callable[[Any], Any], str]] = []
        others: list[tuple[str, Own]] = []
        for name, part in parts.items():
            if isinstance(part, Own):
                own = part.within(keys)
                if keys.isdisjoint(own.keys) and not own.of_events:
                    parts[name] = own.reader(*[None] * len(own.keys)) if own.joined else None
                elif len(own.keys) != 1 or own.once or own.of_events:
                    others.append((name, own))
                else:
                    single.append((name, own.reader, own.keys[0]))
        session = answer.session
        if isinstance(session, Own):
            session = session.within(keys)
            session = None if keys.isdisjoint(session.keys) else session
        failed = status == STATUS_ERROR if answer.failed is None else answer.failed
        facts = answer.facts if build is None else parts
        if build is not None and not single and not others:
            failed = failed or (answer.fails_with_call and _is_soft_error(parts.get("result")))
            facts = build(parts)
            build = None
        return Template(
            kind=answer.kind,
            failed=failed,
            facts=facts,
            single=tuple(single),
            others=tuple(others),
            build=build,
            session=session,
            has_result=answer.fails_with_call and "result" in parts and build is not None,
        )

    def filled(
        self,
        template: Template,
        common: Parts,
        raw: RawValues,
        value: Callable[[Any], Any],
        events: Sequence[RawEvent],
    ) -> tuple[Facts | None, bool]:
        """Return the facts of a span of a template with parts of its own besides the common ones,
        and whether it failed; `value` decodes what is raw.
        """
        parts = common.copy()
        for name, read, key in template.single:
            parts[name] = read(value(raw[key]))
        for name, own in template.others:
            given = tuple(map(raw.get, own.keys))
            parts[name] = (
                self._hasher.once(own, given, value) if own.once else own.of(given, value, events)
            )
        failed = template.failed or (template.has_result and _is_soft_error(parts["result"]))
        return template.build(parts) if template.build is not None else None, failed

    def complete(self, facts: Any) -> Facts | None:
        """Return facts that a convention read as a whole, with their calls hashed."""
        if isinstance(facts, ToolFacts):
            return ToolFacts(self._calls(facts.calls), facts.finish)
        if isinstance(facts, ModelFacts):
            calls = self._calls(facts.calls) if facts.calls else None
            return self.model(_flat(replace(facts, calls=calls)))
        parts, build = self._parts(facts)
        return facts if build is None else build(parts)

    def _parts(self, facts: Any) -> tuple[Parts, Build | None]:
        """Return the parts of facts, and what makes facts of them again; None where they stay as
        they are.
        """
        match facts:
            case ModelFacts():
                calls = self._once(facts.calls, self._calls_of_messages) if facts.calls else None
                return {**_flat(facts), "calls": calls}, self.model
            case InvocationFacts():
                call = None if facts.call is None else next(iter(self._calls((facts.call,))), None)
                return {**_flat(facts), "call": call}, self.invocation
            case ToolFacts(calls=(call,)):
                parts: Parts = {
                    "name": None if call.name is None else self._name(call.name),
                    "call_id": call.call_id,
                    "arguments": self._once(call.arguments, self._hasher.arguments_of(call.name)),
                    "failed": call.failed,
                    "result": self._once(call.result, self._hasher.result),
                    "reported": call.name,
                }
                if facts.agent is None and facts.invocation_id is None:
                    return parts, self.tool
                parts["agent"] = facts.agent
                parts["invocation_id"] = facts.invocation_id
                return parts, self.owned_tool
            case Own():
                return {"facts": self._once(facts, self.complete)}, itemgetter("facts")
            case _:
                return {}, None

    def model(self, parts: Parts) -> ModelFacts:
        """Return the facts of a model call; its calls are None where it asked for none, empty where
        all are ignored.
        """
        if "input" in parts:
            parts["tokens"] = Tokens(parts.pop("input"), parts.pop("output"))
        elif parts["tokens"] is None:
            parts["tokens"] = _NO_TOKENS
        calls = parts["calls"]
        if calls is None:
            parts["calls"] = ()
        else:
            parts["asked_for_tools"] = bool(calls)
        parts["served"] = parts["served"] or ()
        return ModelFacts(**parts)

    def invocation(self, parts: Parts) -> InvocationFacts:
        """Return the facts of an invocation, its tokens None where neither number is known."""
        if "input" in parts:
            parts["tokens"] = Tokens(parts.pop("input"), parts.pop("output"))
        if parts["tokens"] == _NO_TOKENS:
            parts["tokens"] = None
        return InvocationFacts(**parts)

    def tool(self, parts: Parts) -> ToolFacts:
        """Return the facts of a tool span of one call."""
        name = parts["name"]
        reported = parts["reported"]
        call = self._hasher.hashed_call(
            reported, parts["call_id"], parts["arguments"], parts["result"], failed=parts["failed"]
        )
        if name != reported:
            return ToolFacts(() if name is None else (replace(call, name=name),))
        return ToolFacts((call,))

    def owned_tool(self, parts: Parts) -> ToolFacts:
        """Return the same of a span that names its agent."""
        facts = self.tool(parts)
        return replace(facts, agent=parts["agent"], invocation_id=parts["invocation_id"])

    def _calls(self, calls: Iterable[Any]) -> tuple[Call, ...]:
        """Return reported calls hashed, by the names that they have here, without those that are
        ignored.
        """
        found: list[Call] = []
        for given in calls:
            name = given.name
            known = None if name is None else self._name(name)
            if name is None or known is not None:
                call = self._hasher.call(
                    name, given.call_id, given.arguments, given.result, failed=given.failed
                )
                found.append(call if known == name else replace(call, name=known))
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

    def _once(self, part: Any, finish: Reading) -> Any:
        """Return a part with what makes hashes of it, once for equal values; of a value that is
        known already, the hashes.
        """
        if isinstance(part, Own) and part.of_events:
            return replace(part, reader=self._hashed(part.reader, self._remembering(finish)))
        if isinstance(part, Own):
            return replace(part, reader=self._hashed(part.reader, finish), once=True)
        return None if part is None else finish(part)

    def _remembering(self, finish: Reading) -> Reading:
        """Return what finishes equal values once; the same one."""
        found = self._remembered.get(finish)
        if found is None:
            own = Own(finish, ())

            def once(value: Any) -> Any:
                return self._hasher.once(own, (value,), itself)

            found = self._remembered[finish] = once
        return found

    def _hashed(self, read: Reading, finish: Reading) -> Reading:
        """Return a reader that finishes what another one reads; the same one, so that equal values
        are known in every template.
        """
        found = self._hashing.get((read, finish))
        if found is None:

            def hashed(*given: Any) -> Any:
                value = read(*given)
                return None if value is None else finish(value)

            found = self._hashing[read, finish] = hashed
        return found


def _is_soft_error(result: HashedResult | None) -> bool:
    return result is not None and result.is_soft_error


def _flat(facts: ModelFacts | InvocationFacts) -> Parts:
    """Return the fields of facts, their tokens as two, unless one `Own` reads both."""
    parts: Parts = asdict(facts)
    if isinstance(facts.tokens, Tokens):
        del parts["tokens"]
        parts["input"] = facts.tokens.input
        parts["output"] = facts.tokens.output
    return parts
