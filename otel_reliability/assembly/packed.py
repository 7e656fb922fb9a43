"""A run that is final as few objects: thousands are remembered, and most are let go of before anybody asks.

The times and tokens of its calls are most of what a run is made of, an object each; here all of them together are one.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import Any, Final, TypeAlias

from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import Run
from otel_reliability.model.tool_calls import ToolCalls

Packed: TypeAlias = tuple[Any, ...]
"""The fields of a run, its calls by those of their columns that are neither times nor tokens, and then the numbers."""

_CALLS: Final = Run._fields.index("tool_calls")
_REST: Final = Run._fields.index("input_tokens")
"""What stands before tool calls and model calls, and what stands behind."""
_PACKED: Final = ()
"""In the place of tokens that lie with the numbers. What all calls have in common is no tuple."""
_NUMBER: Final = 8
_SIZES: Final = 256


def pack(run: Run) -> Packed | Run:
    """The run packed; itself, where its calls are no columns, or what they count is not known of each or too much.

    >>> from otel_reliability.testing import call, run
    >>> one = run(["search"], tool_calls=ToolCalls.of([call("search")]), model_calls=ModelCalls.of(()))
    >>> type(pack(one)) is tuple and unpack(pack(one)) == one
    True
    """
    calls, models = run.tool_calls, run.model_calls
    if type(calls) is not ToolCalls or type(models) is not ModelCalls:
        return run
    name, ok, retry, repeat, chain, agent, began, ended, arguments, result, effect = calls.columns
    model, used, wrote, failed, caller, asked, answered = models.columns
    numbers = began + ended + asked + answered
    if type(used) is tuple:
        numbers, used = numbers + used, _PACKED
    if type(wrote) is tuple:
        numbers, wrote = numbers + wrote, _PACKED
    try:
        packed = _struct(len(numbers)).pack(*numbers)
    except error:
        return run
    called = (name, ok, retry, repeat, chain, agent, arguments, result, effect)
    return (*run[:_CALLS], called, (model, used, wrote, failed, caller), *run[_REST:], packed)


def unpack(kept: Packed | Run) -> Run:
    """What was packed."""
    if isinstance(kept, Run):
        return kept
    *fields, packed = kept
    name, ok, retry, repeat, chain, agent, arguments, result, effect = fields[_CALLS]
    model, used, wrote, failed, caller = fields[_CALLS + 1]
    numbers = _struct(len(packed) // _NUMBER).unpack(packed)
    times, number = 2 * len(name), len(name)
    began, ended, numbers = numbers[:number], numbers[number:times], numbers[times:]
    number = len(numbers) // (2 + (used == _PACKED) + (wrote == _PACKED))
    asked, answered, *tokens = [numbers[at * number : (at + 1) * number] for at in range(4)]
    if used == _PACKED:
        used = tokens.pop(0)
    if wrote == _PACKED:
        wrote = tokens.pop(0)
    calls = ToolCalls((name, ok, retry, repeat, chain, agent, began, ended, arguments, result, effect))
    models = ModelCalls((model, used, wrote, failed, caller, asked, answered))
    return Run._make([*fields[:_CALLS], calls, models, *fields[_REST:]])


@lru_cache(_SIZES)
def _struct(numbers: int) -> Struct:
    return Struct(f"={numbers}q")
