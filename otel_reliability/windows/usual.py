"""What nearly every run does to its agent, by the compiled module where it is installed (`otel-reliability-native`).

Of all else, and of everything where it is not installed, `AgentState` is asked; tests compare the two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from otel_reliability.metrics.exact import FixedSum
from otel_reliability.metrics.stability.token_budget_pressure import TokenBudgetPressure
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.row import Path, Row
from otel_reliability.model.run import AgentKey, Run
from otel_reliability.windows.agent import AgentState
from otel_reliability.windows.compiled import NATIVE, usual_row_of
from otel_reliability.windows.measures import MOST_UNTOLD, Measures, Ways
from otel_reliability.windows.ordered import OrderedRows
from otel_reliability.windows.paths import PathTable
from otel_reliability.windows.recent import RecentRuns
from otel_reliability.windows.window import AgentWindow

Did: TypeAlias = Callable[[AgentState, Run], bool]
Applied: TypeAlias = Callable[
    [dict[AgentKey, Any], OrderedDict[AgentKey, float], list[RunEvent], int, float, int, bool], int
]


def _in_python(state: AgentState, run: Run) -> bool:
    return False


def _each_in_python(
    agents: dict[AgentKey, Any], seen: OrderedDict[AgentKey, float], events: list[RunEvent], at: int, *_: object
) -> int:
    return at


def _usual() -> Any:
    return NATIVE.Usual(
        usual_row_of, RunEvent, RunChange.CLOSED, RunChange.SETTLED, Run, Row, Path, PathTable, AgentState, RecentRuns,
        AgentWindow, OrderedRows, Measures, Ways, TokenBudgetPressure, FixedSum, MOST_UNTOLD,
    )  # fmt: skip


_USUAL: Final = None if NATIVE is None else _usual()
close: Final[Did] = _in_python if _USUAL is None else _USUAL.close
"""As `AgentState.close`. False: nothing was done, ask that."""
settle: Final[Did] = _in_python if _USUAL is None else _USUAL.settle
"""As `AgentState.settle`. False: nothing was done, ask that."""
apply: Final[Applied] = _each_in_python if _USUAL is None else _USUAL.apply
"""As `Fleet.apply` of events of these agents from a place on: gives the place of the first that must be applied there."""
