"""Rows and calls by the compiled module, where it is installed (`otel-reliability-native`); otherwise, and for all that is
unusual, by `rows` and `simple`, which tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from otel_reliability.assembly import resting, rows
from otel_reliability.assembly.rows import Models, Tools
from otel_reliability.model import packed
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.packed import Packed
from otel_reliability.model.span import AgentSpan, Kind, ModelFacts, SpanId, ToolFacts
from otel_reliability.model.tool_calls import ToolCalls

LayDown: TypeAlias = Callable[[Models, Tools], Packed | None]
Wake: TypeAlias = Callable[[Packed], tuple[Models, Tools]]
Joined: TypeAlias = Callable[[Packed, Packed], Packed | None]
IdsOf: TypeAlias = Callable[[Packed, list[AgentSpan]], bytes | None]
Seek: TypeAlias = Callable[[Packed, list[AgentSpan], SpanId], int]
Distinct: TypeAlias = Callable[[Models, Tools, list[AgentSpan]], bool]
HangOn: TypeAlias = Callable[[Models, Tools, SpanId], bool]
TakeRows: TypeAlias = Callable[[Sequence[AgentSpan], int, Models, Tools, int], int]


def _stay_awake(models: Models, tools: Tools) -> None:
    return None


NATIVE: Final = packed.NATIVE
CALLER: Final[Any] = None if NATIVE is None else NATIVE.Caller(ModelCalls, ToolCalls)
"""Makes columns of calls of rows; None: they are made in Python."""
lay_down: Final[LayDown] = _stay_awake if NATIVE is None else NATIVE.lay_down
"""In Python it takes longer than all else that a run costs, so there rows stay as they are."""
wake: Final[Wake] = resting.wake if NATIVE is None else NATIVE.Waker(Models, Tools).wake
joined: Final[Joined] = resting.joined if NATIVE is None else NATIVE.joined
ids_of: Final[IdsOf] = resting.ids_of if NATIVE is None else NATIVE.ids_of
seek: Final[Seek] = resting.seek if NATIVE is None else NATIVE.seek
are_distinct: Final[Distinct] = rows.are_distinct if NATIVE is None else NATIVE.are_distinct
hang_on: Final[HangOn] = rows.hang_on if NATIVE is None else NATIVE.hang_on
take_rows: Final[TakeRows] = (
    rows.take_rows if NATIVE is None else NATIVE.Taker(Kind.MODEL, Kind.TOOL, ModelFacts, ToolFacts).take
)
