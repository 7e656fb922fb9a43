"""A whole run as bytes, for as long as it is kept for pages: its words, which repeat from run to run, and its numbers."""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Sequence
from math import gcd
from typing import Any, Final, TypeAlias, cast

from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import AgentKey, CloseReason, Outcome, Run, Tools
from otel_reliability.model.span import Evaluation
from otel_reliability.model.tool_calls import ToolCalls

Times: TypeAlias = Sequence[Sequence[int]]
"""When calls began, and when they ended."""

_FORMAT: Final = 2
"""Of `marshal`: without references, so that what is equal looks equal."""

_AT: Final = {name: at for at, name in enumerate(Run._fields)}
_RUN_ID, _TRACE_ID, _ROOT, _KEY = _AT["run_id"], _AT["trace_id"], _AT["root_span_id"], _AT["key"]
_START, _END, _PATH, _TOOLS = _AT["start_ns"], _AT["end_ns"], _AT["path"], _AT["tools"]
_CALLS, _MODELS, _INPUT, _OUTPUT = _AT["tool_calls"], _AT["model_calls"], _AT["input_tokens"], _AT["output_tokens"]
_OUTCOME, _EVALUATIONS, _CLOSED_BY = _AT["outcome"], _AT["evaluations"], _AT["closed_by"]
_CALL_START: Final = ToolCalls.fields.index("start_ns")
_MODEL_START: Final = ModelCalls.fields.index("start_ns")
_MODEL_INPUT: Final = ModelCalls.fields.index("input_tokens")
_NO_TIMES: Final = ((), ())
_NUMBER: Final = 8
"""Bytes of a number."""


def write(run: Run) -> bytes:
    """The run, but for its id and its end.

    Raises OverflowError for numbers of more than 8 bytes, ValueError for values that are not plain.

    >>> from otel_reliability.testing import run
    >>> one = run(["search", "book"])
    >>> read(write(one), one.run_id, one.end_ns) == one
    True
    """
    calls = None if run.tool_calls is None else ToolCalls.of(run.tool_calls)
    models = ModelCalls.of(run.model_calls)
    words: list[Any] = list(run)
    if run.run_id == _usual_id(run.trace_id, run.root_span_id):
        words[_TRACE_ID] = words[_ROOT] = True
    words[_KEY] = tuple(run.key)
    words[_PATH] = (calls is not None and run.path == calls.names) or run.path
    words[_TOOLS] = run.tools.value
    words[_INPUT] = _told_by(run.input_tokens, models.input_tokens)
    words[_OUTPUT] = _told_by(run.output_tokens, models.output_tokens)
    words[_OUTCOME] = run.outcome.value
    words[_EVALUATIONS] = tuple([tuple(one) for one in run.evaluations])
    words[_CLOSED_BY] = run.closed_by.value
    called = _NO_TIMES if calls is None else calls.columns[_CALL_START : _CALL_START + 2]
    words[_END], unit, numbers = _since(run.start_ns, run.end_ns, models.columns[_MODEL_START:], called)
    words[_RUN_ID], words[_START] = unit, None
    words[_CALLS] = None if calls is None else (*calls.columns[:_CALL_START], *calls.columns[_CALL_START + 2 :])
    columns = list(models.columns[:_MODEL_START])
    for at in (_MODEL_INPUT, _MODEL_INPUT + 1):
        tokens = columns[at]
        if type(tokens) is tuple and None not in tokens:
            numbers += tokens
            columns[at] = True
    words[_MODELS] = tuple(columns)
    return marshal.dumps((tuple(words), _planes(numbers)), _FORMAT)


def read(written: bytes, run_id: str, end_ns: int) -> Run:
    """The run, as it was."""
    words, planes = marshal.loads(written)  # noqa: S302 (we wrote it)
    fields: list[Any] = list(words)
    unit, order, calls, columns = fields[_RUN_ID], fields[_END], fields[_CALLS], list(fields[_MODELS])
    told_apart = [at for at in (_MODEL_INPUT, _MODEL_INPUT + 1) if columns[at] is True]
    told = _numbers(planes, 1 + 2 * len(order) + len(told_apart) * order.count(0))
    start_ns = end_ns - told[0] * unit
    modelled, called = _from(start_ns, unit, order, told)
    end, number = 1 + 2 * len(order), len(modelled[0])
    for at in told_apart:
        columns[at], end = tuple(told[end : end + number]), end + number
    models = ModelCalls((*columns, *modelled))
    if calls is not None:
        calls = ToolCalls((*calls[:_CALL_START], *called, *calls[_CALL_START:]))
    if fields[_TRACE_ID] is True:
        fields[_TRACE_ID], fields[_ROOT] = map(bytes.fromhex, run_id.split("-"))
    if fields[_PATH] is True:
        fields[_PATH] = () if calls is None else calls.names
    if fields[_INPUT] is True:
        fields[_INPUT] = sum([tokens or 0 for tokens in models.input_tokens])
    if fields[_OUTPUT] is True:
        fields[_OUTPUT] = sum([tokens or 0 for tokens in models.output_tokens])
    fields[_RUN_ID], fields[_START], fields[_END] = run_id, start_ns, end_ns
    fields[_KEY] = AgentKey(*fields[_KEY])
    fields[_TOOLS] = Tools(fields[_TOOLS])
    fields[_CALLS], fields[_MODELS] = calls, models
    fields[_OUTCOME] = Outcome(fields[_OUTCOME])
    fields[_EVALUATIONS] = tuple([Evaluation(*one) for one in fields[_EVALUATIONS]])
    fields[_CLOSED_BY] = CloseReason(fields[_CLOSED_BY])
    return Run(*fields)


def _since(start_ns: int, end_ns: int, models: Times, calls: Times) -> tuple[bytes, int, list[int]]:
    """The calls in the order of the clock (0 a model call, 1 a tool call), a unit of time, and in that unit: how long the run
    took, how long after the end of the one before each call began (twice that; where it began sooner one less, and positive),
    and how long each took. So times are small, and many are alike.
    """
    begun = [*models[0], *calls[0]]
    number = len(models[0])
    order = bytes([at >= number for at in sorted(range(len(begun)), key=begun.__getitem__)])
    each = (zip(*models, strict=True), zip(*calls, strict=True))
    now, waits, took = start_ns, list[int](), list[int]()
    for kind in order:
        began, ended = next(each[kind])
        waits.append(began - now)
        took.append(ended - began)
        now = ended
    unit = gcd(end_ns - start_ns, *waits, *took) or 1
    since = [2 * wait // unit if wait >= 0 else -2 * wait // unit - 1 for wait in waits]
    return order, unit, [(end_ns - start_ns) // unit, *since, *[one // unit for one in took]]


def _from(start_ns: int, unit: int, order: bytes, told: Sequence[int]) -> tuple[Times, Times]:
    """What `_since` was given."""
    times: tuple[tuple[list[int], list[int]], tuple[list[int], list[int]]] = (([], []), ([], []))
    number, now = len(order), start_ns
    for at, kind in enumerate(order, 1):
        wait, (began, ended) = told[at], times[kind]
        now += unit * (-(wait + 1) // 2 if wait & 1 else wait // 2)
        began.append(now)
        now += unit * told[at + number]
        ended.append(now)
    return cast("tuple[Times, Times]", tuple([tuple([tuple(column) for column in kind]) for kind in times]))


def _planes(numbers: Sequence[int]) -> bytes:
    """The first bytes of all numbers, then the second ones and so on, while there are any but 0."""
    joined = array("q", numbers).tobytes()
    return b"".join([joined[at::_NUMBER] for at in range(_NUMBER)]).rstrip(b"\0")


def _numbers(planes: bytes, number: int) -> Sequence[int]:
    """What `_planes` was given, as many as they were."""
    joined, filled = bytearray(_NUMBER * number), planes.ljust(_NUMBER * number, b"\0")
    for at in range(_NUMBER):
        joined[at::_NUMBER] = filled[at * number : (at + 1) * number]
    return array("q", bytes(joined))


def _told_by(total: int | None, parts: Sequence[int | None]) -> int | None:
    """True where a total is the sum of its parts, else itself."""
    return True if None not in parts and total == sum(cast("Sequence[int]", parts)) else total


def _usual_id(trace_id: bytes, span_id: bytes | None) -> str:
    return "" if span_id is None else f"{trace_id.hex()}-{span_id.hex()}"
