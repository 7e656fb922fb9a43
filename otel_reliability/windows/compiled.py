"""Rows of runs, and the tally of those that come and leave, by the compiled module where it is installed
(`otel-reliability-native`); otherwise by `rows` and `tally`, which tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from otel_reliability import native
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.row import Row
from otel_reliability.model.run import Run
from otel_reliability.model.tool_calls import ToolCalls
from otel_reliability.model.tools import ToolRules
from otel_reliability.windows import rows
from otel_reliability.windows.paths import PathTable

MODULE: Final = "otel_reliability_native_windows"
TraceOf: TypeAlias = Callable[[Run, tuple[str, ...]], Any]
RowOf: TypeAlias = Callable[[Run, PathTable, ToolRules], Row | None]


def load() -> Any:
    """The compiled module, None where it is not installed or does not fit."""
    return native.load(MODULE)


def _in_python(run: Run, paths: PathTable, rules: ToolRules) -> Row | None:
    return None


def _no_trace(run: Run, derived: tuple[str, ...]) -> Any:
    return None


def _rows() -> Any:
    tools, models = ToolCalls.fields.index, ModelCalls.fields.index
    return NATIVE.Rows(
        Run,
        Row,
        (ToolCalls, tuple(map(tools, ("name", "ok", "retry", "repeat")))),
        (ModelCalls, tuple(map(models, ("start_ns", "end_ns")))),
        rows.NO_RETRIES,
        rows.BY_STATUS,
        rows.retries_of,
        rows.effects_told,
    )


NATIVE: Final = load()
ROWS: Final[Any] = None if NATIVE is None else _rows()
usual_row_of: Final[RowOf] = _in_python if NATIVE is None else ROWS.of
"""What `row_of` says of a usual run; None: ask that."""
usual_trace_of: Final[TraceOf] = _no_trace if NATIVE is None else ROWS.trace
"""What `signals.trace_of` says of a run that nobody judged and that called tools, with the names of what is derived; None: ask
that."""


def row_of(run: Run, paths: PathTable, rules: ToolRules) -> Row:
    """As `rows.row_of`."""
    row = usual_row_of(run, paths, rules)
    return rows.row_of(run, paths, rules) if row is None else row
