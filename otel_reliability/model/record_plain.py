"""Runs of records as they are nearly always: every field there, and of its kind. `record.read_run` reads the others.

What stands here checks the same as the careful reader, field by field, but cannot say what is wrong: where anything is, it
gives None, and who asked asks that one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, cast

from otel_reliability.model.bounded import LONGEST
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import AgentKey, CloseReason, Outcome, Run, Tools
from otel_reliability.model.tool_calls import ToolCalls

LATEST_NS: Final = 2**63 - 1
GREATEST: Final = sys.float_info.max

_FIELDS: Final = cast("Callable[[Mapping[str, Any]], tuple[Any, ...]]", itemgetter(*Run._fields))
_TOOLS: Final[Mapping[Any, Tools]] = {one.value: one for one in Tools}
_OUTCOMES: Final[Mapping[Any, Outcome]] = {one.value: one for one in Outcome}
_REASONS: Final[Mapping[Any, CloseReason]] = {one.value: one for one in CloseReason}


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
        _list(path)
        _texts(*path)
    return Run(
        run_id, _digits(trace_id, 16), None if root_span_id is None else _digits(root_span_id, 8), _key(key),
        session_id, task_id, trial, condition, input_class, _pairs(branches), nested, implicit, incomplete,
        start_ns, end_ns, None if path is None else tuple(path), _TOOLS[tools],
        None if tool_calls is None else ToolCalls.of([_call(one) for one in _list(tool_calls)]),
        ModelCalls.of([_model_call(one) for one in _list(model_calls)]),
        input_tokens, output_tokens, _number(pressure), arguments_known, _OUTCOMES[outcome], outcome_source,
        _number(confidence), _number(cost), None if violations is None else _pairs(violations), (), weight, span_count,
        _REASONS[closed_by],
    )  # fmt: skip


def _key(raw: Any) -> AgentKey:
    namespace, service, environment, agent, extra = _list(raw)
    _texts(namespace, service, environment, agent)
    return AgentKey(namespace, service, environment, agent, _pairs(extra))


def _call(raw: Any) -> tuple[Any, ...]:
    name, ok, retry, repeat, chain, agent, start_ns, end_ns, effect, has_effect = _list(raw)
    if not (type(ok) is type(retry) is type(repeat) is type(has_effect) is bool and type(name) is type(agent) is str):
        raise _Odd
    if len(name) > LONGEST or len(agent) > LONGEST or type(chain) is not int or not 0 <= chain <= LATEST_NS:
        raise _Odd
    _times(start_ns, end_ns)
    hashed = None if effect is None else _digits(effect, None)
    return name, ok, retry, repeat, chain, agent, start_ns, end_ns, None, None, hashed, has_effect


def _model_call(raw: Any) -> tuple[Any, ...]:
    model, input_tokens, output_tokens, failed, agent, start_ns, end_ns = _list(raw)
    if type(failed) is not bool or type(agent) is not str or len(agent) > LONGEST:
        raise _Odd
    if model is not None and (type(model) is not str or len(model) > LONGEST):
        raise _Odd
    for tokens in (input_tokens, output_tokens):
        if tokens is not None and (type(tokens) is not int or not -LATEST_NS <= tokens <= LATEST_NS):
            raise _Odd
    _times(start_ns, end_ns)
    return model, input_tokens, output_tokens, failed, agent, start_ns, end_ns


def _times(start_ns: Any, end_ns: Any) -> None:
    if not (type(start_ns) is type(end_ns) is int and 0 <= start_ns <= LATEST_NS and 0 <= end_ns <= LATEST_NS):
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


def _digits(value: Any, size: int | None) -> bytes:
    if type(value) is not str or len(value) > LONGEST:
        raise _Odd
    found = bytes.fromhex(value)
    if size is not None and len(found) != size:
        raise _Odd
    return found


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if type(value) not in {int, float} or not -GREATEST <= value <= GREATEST:
        raise _Odd
    return float(value)
