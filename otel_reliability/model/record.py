"""A run record: one change of one run as a plain, versioned, self-contained object that JSON can hold.

It is what one service hands another (as an OTLP log event), what a journal stores and what a stream engine carries. Of the
hashes it has the effect of each call only: retries and repeats are marked already, so nobody needs those of the arguments.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast

from otel_reliability.model.bounded import LONGEST
from otel_reliability.model.event import RunChange
from otel_reliability.model.model_calls import ModelCall, ModelCalls
from otel_reliability.model.record_plain import GREATEST, LATEST_NS, plain_run
from otel_reliability.model.run import AgentKey, CloseReason, Outcome, Run, Tools
from otel_reliability.model.span import Evaluation
from otel_reliability.model.tool_calls import ToolCall, ToolCalls

VERSION: Final = 1
"""Raised when a reader of the version before could no longer understand a record."""
EVENT_NAME: Final = "otel_reliability.run"
"""The name of the log event that carries a record."""

T = TypeVar("T")
E = TypeVar("E", bound=enum.Enum)
Pair = tuple[str, str]


class BadRecord(ValueError):
    """What should be a record is none: which field, and what is wrong with it. Holds no content."""


class RunRecord(NamedTuple):
    """One change of one run, and when it was told (Unix nanoseconds): of two records of a run the later told one stands."""

    change: RunChange
    run: Run
    told_ns: int


def write(record: RunRecord) -> dict[str, Any]:
    """The record as an object of strings, numbers, booleans, lists and nulls.

    >>> from otel_reliability.testing import run
    >>> kept = run(["search"])
    >>> read(write(RunRecord(RunChange.CLOSED, kept, 1))).run.path
    ('search',)
    """
    return {
        "version": VERSION,
        "change": record.change.value,
        "told_ns": record.told_ns,
        "run": write_run(record.run),
    }


def read(raw: object, run: Run | None = None) -> RunRecord:
    """The record that an object tells. Raises `BadRecord` for one that is none, or is of another version.

    `run` is that of the record, where somebody has read it before.
    """
    fields = _Fields(raw, "record")
    version = fields.whole("version")
    if version != VERSION:
        raise BadRecord(f"a record of version {version}; this service reads version {VERSION}")
    told = read_run(fields.given("run")) if run is None else run
    return RunRecord(fields.word("change", RunChange), told, fields.whole("told_ns", least=0))


def write_run(run: Run) -> dict[str, Any]:
    """A run as an object. `read_run` gives it back, but for the hashes of arguments and results."""
    return {
        **run._asdict(),
        "trace_id": run.trace_id.hex(),
        "root_span_id": _hex(run.root_span_id),
        "key": [*run.key[:4], _pairs(run.key.extra)],
        "branches": _pairs(run.branches),
        "path": None if run.path is None else list(run.path),
        "tools": run.tools.value,
        "tool_calls": None
        if run.tool_calls is None
        else [_write_call(call) for call in ToolCalls.of(run.tool_calls).rows()],
        "model_calls": [list(call) for call in ModelCalls.of(run.model_calls).rows()],
        "outcome": run.outcome.value,
        "violations": None if run.violations is None else _pairs(run.violations),
        "evaluations": [_write_evaluation(one) for one in run.evaluations],
        "closed_by": run.closed_by.value,
    }


def read_run(raw: object) -> Run:
    """The run that an object tells. Raises `BadRecord`."""
    plain = plain_run(raw)
    return carefully(raw) if plain is None else plain


def carefully(raw: object) -> Run:
    """The same for whatever it may be, and what is wrong with it. Raises `BadRecord`."""
    fields = _Fields(raw, "run")
    start_ns = fields.whole("start_ns", least=0)
    return Run(
        run_id=fields.text("run_id"),
        trace_id=fields.trace_id("trace_id"),
        root_span_id=fields.maybe("root_span_id", fields.span_id),
        key=_read_key(fields.given("key")),
        session_id=fields.maybe("session_id", fields.text),
        task_id=fields.maybe("task_id", fields.text),
        trial=fields.maybe("trial", fields.whole),
        condition=fields.text("condition"),
        input_class=fields.maybe("input_class", fields.text),
        branches=fields.pairs("branches"),
        nested=fields.truth("nested"),
        implicit=fields.truth("implicit"),
        incomplete=fields.truth("incomplete"),
        start_ns=start_ns,
        end_ns=fields.whole("end_ns", least=start_ns),
        path=fields.maybe("path", fields.texts),
        tools=fields.word("tools", Tools),
        tool_calls=fields.maybe("tool_calls", lambda name: ToolCalls.of(fields.each(name, _read_call))),
        model_calls=ModelCalls.of(fields.each("model_calls", _read_model_call)),
        input_tokens=fields.maybe("input_tokens", fields.whole),
        output_tokens=fields.maybe("output_tokens", fields.whole),
        token_pressure=fields.maybe("token_pressure", fields.number),
        arguments_known=fields.truth("arguments_known"),
        outcome=fields.word("outcome", Outcome),
        outcome_source=fields.text("outcome_source"),
        confidence=fields.maybe("confidence", fields.number),
        cost=fields.maybe("cost", fields.number),
        violations=fields.maybe("violations", fields.pairs),
        evaluations=fields.each("evaluations", _read_evaluation),
        weight=fields.whole("weight", least=1),
        span_count=fields.whole("span_count", least=0),
        closed_by=fields.word("closed_by", CloseReason),
    )


def _write_call(call: tuple[Any, ...]) -> list[Any]:
    *told, _, _, effect, has_effect = call
    told += [_hex(effect), has_effect]
    return told


def _write_evaluation(one: Evaluation) -> list[Any]:
    return [one.name, one.score, one.label, one.time_ns, _hex(one.trace_id), _hex(one.span_id), one.response_id]


def _read_key(raw: object) -> AgentKey:
    fields = _Fields.of(raw, "key", AgentKey._fields)
    namespace, service, environment, agent = (fields.text(name) for name in AgentKey._fields[:4])
    return AgentKey(namespace, service, environment, agent, fields.pairs("extra"))


def _read_call(raw: object) -> ToolCall:
    names = ("name", "ok", "retry", "repeat", "chain", "agent", "start_ns", "end_ns", "effect", "has_effect")
    fields = _Fields.of(raw, "tool_calls", names)
    return ToolCall(
        name=fields.text("name"),
        ok=fields.truth("ok"),
        retry=fields.truth("retry"),
        repeat=fields.truth("repeat"),
        chain=fields.whole("chain", least=0),
        agent=fields.text("agent"),
        start_ns=fields.whole("start_ns", least=0),
        end_ns=fields.whole("end_ns", least=0),
        arguments=None,
        result=None,
        effect=fields.maybe("effect", fields.digits),
        has_effect=fields.truth("has_effect"),
    )


def _read_model_call(raw: object) -> ModelCall:
    fields = _Fields.of(raw, "model_calls", ModelCall._fields)
    return ModelCall(
        fields.maybe("model", fields.text),
        fields.maybe("input_tokens", fields.whole),
        fields.maybe("output_tokens", fields.whole),
        fields.truth("failed"),
        fields.text("agent"),
        fields.whole("start_ns", least=0),
        fields.whole("end_ns", least=0),
    )


def _read_evaluation(raw: object) -> Evaluation:
    fields = _Fields.of(raw, "evaluations", Evaluation._fields)
    return Evaluation(
        fields.text("name"),
        fields.maybe("score", fields.number),
        fields.maybe("label", fields.text),
        fields.whole("time_ns", least=0),
        fields.maybe("trace_id", fields.trace_id),
        fields.maybe("span_id", fields.span_id),
        fields.maybe("response_id", fields.text),
    )


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _pairs(pairs: Sequence[Pair]) -> list[list[str]]:
    return [list(pair) for pair in pairs]


class _Fields:
    """The fields of one object, each read as the type it must have. Anybody may have sent it."""

    def __init__(self, raw: object, place: str) -> None:
        if not isinstance(raw, Mapping):
            raise BadRecord(f"{place} is no object")
        self._raw, self._place = cast("Mapping[str, object]", raw), place

    @classmethod
    def of(cls, raw: object, place: str, names: Sequence[str]) -> _Fields:
        """The items of a list, under the names of their places."""
        if not isinstance(raw, list) or len(cast("list[object]", raw)) != len(names):
            raise BadRecord(f"{place} is no list of {len(names)}")
        return cls(dict(zip(names, cast("list[object]", raw), strict=True)), place)

    def given(self, name: str) -> object:
        """The field as it is."""
        if name not in self._raw:
            raise self._bad(name, "is missing")
        return self._raw[name]

    def maybe(self, name: str, reader: Callable[[str], T]) -> T | None:
        """The field, or None where it is null."""
        return None if self.given(name) is None else reader(name)

    def text(self, name: str) -> str:
        value = self.given(name)
        if not isinstance(value, str) or len(value) > LONGEST:
            raise self._bad(name, "is no text, or too long")
        return value

    def truth(self, name: str) -> bool:
        value = self.given(name)
        if not isinstance(value, bool):
            raise self._bad(name, "is neither true nor false")
        return value

    def whole(self, name: str, *, least: int = -LATEST_NS) -> int:
        value = self.given(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LATEST_NS:
            raise self._bad(name, "is no whole number, or out of range")
        return value

    def number(self, name: str) -> float:
        value = self.given(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -GREATEST <= value <= GREATEST:
            raise self._bad(name, "is no number")
        return float(value)

    def trace_id(self, name: str) -> bytes:
        return self.digits(name, 16)

    def span_id(self, name: str) -> bytes:
        return self.digits(name, 8)

    def digits(self, name: str, size: int | None = None) -> bytes:
        try:
            value = bytes.fromhex(self.text(name))
        except ValueError:
            raise self._bad(name, "is not hexadecimal") from None
        if size not in {None, len(value)}:
            raise self._bad(name, f"has {len(value)} bytes, not {size}")
        return value

    def word(self, name: str, kind: type[E]) -> E:
        value = self.text(name)
        try:
            return kind(value)
        except ValueError:
            raise self._bad(name, f"is none of {', '.join(str(one.value) for one in kind)}") from None

    def texts(self, name: str) -> tuple[str, ...]:
        return self.each(name, _text)

    def pairs(self, name: str) -> tuple[Pair, ...]:
        return self.each(name, _pair)

    def each(self, name: str, reader: Callable[[object], T]) -> tuple[T, ...]:
        value = self.given(name)
        if not isinstance(value, list):
            raise self._bad(name, "is no list")
        return tuple(reader(item) for item in cast("list[object]", value))

    def _bad(self, name: str, what: str) -> BadRecord:
        return BadRecord(f"{self._place}.{name} {what}")


def _text(raw: object) -> str:
    if not isinstance(raw, str) or len(raw) > LONGEST:
        raise BadRecord("a list of texts holds something else, or what is too long")
    return raw


def _pair(raw: object) -> Pair:
    match raw:
        case [str(first), str(second)] if len(first) <= LONGEST and len(second) <= LONGEST:
            return first, second
        case _:
            raise BadRecord("a list of pairs of texts holds something else, or what is too long")
