"""Runs of records as they are nearly always: every field there, and of its kind. `record.read_run` reads the others.

What stands here checks the same as the careful reader, field by field, but cannot say what is wrong: where anything is, it
gives None, and who asked asks that one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, cast

from otel_reliability.model.bounded import LONGEST
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import AgentKey, CloseReason, Outcome, Run, Tools
from otel_reliability.model.tool_calls import NO_TOOL_CALLS, ToolCalls

LATEST_NS: Final = 2**63 - 1
GREATEST: Final = sys.float_info.max

_FIELDS: Final = cast("Callable[[Mapping[str, Any]], tuple[Any, ...]]", itemgetter(*Run._fields))
_TOOLS: Final[Mapping[Any, Tools]] = {one.value: one for one in Tools}
_OUTCOMES: Final[Mapping[Any, Outcome]] = {one.value: one for one in Outcome}
_REASONS: Final[Mapping[Any, CloseReason]] = {one.value: one for one in CloseReason}
_TRUTHS, _WHOLES, _TEXTS, _LISTS = (frozenset[type]((kind,)) for kind in (bool, int, str, list))
_NO_MODEL_CALLS: Final = ModelCalls.of(())


class _Odd(Exception):
    """Something is not as it nearly always is."""


def plain_run(raw: object) -> Run | None:
    """The run that an object tells, None where it is not read here: one with judgements, one with anything wrong."""
    if type(raw) is not dict:
        return None
    try:
        return _run(cast("dict[str, Any]", raw))
    except (KeyError, TypeError, ValueError, _Odd):
        return None


def _run(raw: dict[str, Any]) -> Run:
    # fmt: off
    (
        run_id, trace_id, root_span_id, key, session_id, task_id, trial, condition, input_class, branches, nested, implicit,
        incomplete, start_ns, end_ns, path, tools, tool_calls, model_calls, input_tokens, output_tokens, pressure,
        arguments_known, outcome, outcome_source, confidence, cost, violations, evaluations, weight, span_count, closed_by,
    ) = _FIELDS(raw)
    # fmt: on
    if evaluations or type(evaluations) is not list:
        raise _Odd
    _texts(run_id, condition, outcome_source)
    _texts(*[one for one in (session_id, task_id, input_class) if one is not None])
    _truths(nested, implicit, incomplete, arguments_known)
    _wholes(0, start_ns, span_count)
    _wholes(start_ns, end_ns)
    _wholes(1, weight)
    _wholes(-LATEST_NS, *[one for one in (trial, input_tokens, output_tokens) if one is not None])
    if path is not None:
        _are_texts(_list(path))
    return Run(
        run_id, _digits(trace_id, 16), None if root_span_id is None else _digits(root_span_id, 8), _key(key),
        session_id, task_id, trial, condition, input_class, _pairs(branches), nested, implicit, incomplete,
        start_ns, end_ns, None if path is None else tuple(path), _TOOLS[tools],
        None if tool_calls is None else _tool_calls(tool_calls), _model_calls(model_calls),
        input_tokens, output_tokens, _number(pressure), arguments_known, _OUTCOMES[outcome], outcome_source,
        _number(confidence), _number(cost), None if violations is None else _pairs(violations), (), weight, span_count,
        _REASONS[closed_by],
    )  # fmt: skip


def _key(raw: Any) -> AgentKey:
    namespace, service, environment, agent, extra = _list(raw)
    _texts(namespace, service, environment, agent)
    return AgentKey(namespace, service, environment, agent, _pairs(extra))


def _tool_calls(raw: Any) -> ToolCalls:
    if not _list(raw):
        return NO_TOOL_CALLS
    name, ok, retry, repeat, chain, agent, start_ns, end_ns, effect = _columns(raw)
    _are(_TRUTHS, ok + retry + repeat)
    _are_texts(name + agent)
    _are_wholes(0, chain + start_ns + end_ns)
    _are_texts([one for one in effect if one is not None])
    hashes = [None if one is None else bytes.fromhex(one) for one in effect]
    unknown = (None,) * len(name)
    return ToolCalls.of_columns(
        (name, ok, retry, repeat, chain, agent, start_ns, end_ns, unknown, unknown, tuple(hashes))
    )


def _model_calls(raw: Any) -> ModelCalls:
    if not _list(raw):
        return _NO_MODEL_CALLS
    columns = model, input_tokens, output_tokens, failed, agent, start_ns, end_ns = _columns(raw)
    _are(_TRUTHS, failed)
    _are_texts([one for one in model + agent if one is not None])
    _are_wholes(-LATEST_NS, [one for one in input_tokens + output_tokens if one is not None])
    _are(_TEXTS, agent)
    _are_wholes(0, start_ns + end_ns)
    return ModelCalls.of_columns(columns)


def _columns(raw: Any) -> tuple[tuple[Any, ...], ...]:
    """The columns of a list of equally long lists: they are looked at as wholes, which is several times as fast."""
    _are(_LISTS, raw)
    return tuple(zip(*raw, strict=True))


def _are(kinds: frozenset[type], values: Sequence[Any]) -> None:
    if not kinds.issuperset(map(type, values)):
        raise _Odd


def _are_texts(values: Sequence[Any]) -> None:
    _are(_TEXTS, values)
    if values and max(map(len, values)) > LONGEST:
        raise _Odd


def _are_wholes(least: int, values: Sequence[Any]) -> None:
    _are(_WHOLES, values)
    if values and not (least <= min(values) and max(values) <= LATEST_NS):
        raise _Odd


def _list(raw: Any) -> list[Any]:
    if type(raw) is not list:
        raise _Odd
    return cast("list[Any]", raw)


def _pairs(raw: Any) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for one in _list(raw):
        first, second = _list(one)
        _texts(first, second)
        found.append((first, second))
    return tuple(found)


def _texts(*values: Any) -> None:
    for value in values:
        if type(value) is not str or len(value) > LONGEST:
            raise _Odd


def _truths(*values: Any) -> None:
    for value in values:
        if value is not True and value is not False:
            raise _Odd


def _wholes(least: int, *values: Any) -> None:
    for value in values:
        if type(value) is not int or not least <= value <= LATEST_NS:
            raise _Odd


def _digits(value: Any, size: int) -> bytes:
    _texts(value)
    found = bytes.fromhex(value)
    if len(found) != size:
        raise _Odd
    return found


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in {int, float} or not -GREATEST <= value <= GREATEST:
        raise _Odd
    return float(value)
