"""The recordings with several attempts at each task, as rows of one agent."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any, Final

from otel_reliability import testing
from otel_reliability.config import Settings, ToolSettings
from otel_reliability.engine import Engine
from otel_reliability.model.row import Row
from otel_reliability.model.run import CloseReason, Outcome, Run
from otel_reliability.model.span import RawSpan
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.windows.rows import PathTable, row_of
from tests.shared import shared

GEMINI: Final = "corpora/multi_trial/gemini-2.5-flash_airline.json"
SWE: Final = "corpora/swe/sweagent_gpt4_lite_3trials.otlp.jsonl.gz"
TAUBENCH: Final = "corpora/taubench/gpt-4o_airline_4trials.otlp.jsonl.gz"


@functools.cache
def gemini_rows() -> tuple[Row, ...]:
    """The recorded calls of eight attempts at each of ten tasks; their four variants are taken as one agent."""
    paths = PathTable()
    runs = json.loads(shared(GEMINI).read_text())["runs"]
    return tuple(row_of(_run(number, one), paths) for number, one in enumerate(runs, 1))


def _run(number: int, recorded: dict[str, Any]) -> Run:
    calls = tuple(
        testing.call(tool, second, ok=ok, arguments=bytes.fromhex(arguments), effect=bytes.fromhex(effect))
        for second, (tool, arguments, effect, ok) in enumerate(recorded["calls"])
    )
    outcome = Outcome.SUCCESS if recorded["success"] else Outcome.FAILURE
    path = [call.name for call in calls]
    return testing.run(path, number, tool_calls=calls, task_id=recorded["task"], outcome=outcome)


@functools.cache
def taubench_spans() -> tuple[RawSpan, ...]:
    """The spans of four attempts at each of fifty tasks."""
    return tuple(span for batch in read_file(shared(TAUBENCH)) for span in batch.spans)


def swe_rows() -> tuple[Row, ...]:
    """The runs of a coding agent, three attempts at each of 276 tasks."""
    return rows_from(_swe_spans())


def swe_rows_by_file() -> tuple[Row, ...]:
    """The same runs, their effects compared by the file that a call changes."""
    return rows_from(_swe_spans(), ToolSettings(effect_key=dict.fromkeys(("edit", "create", "apply_patch"), "path")))


@functools.cache
def _swe_spans() -> tuple[RawSpan, ...]:
    return tuple(span for batch in read_file(shared(SWE)) for span in batch.spans)


@functools.cache
def taubench_rows() -> tuple[Row, ...]:
    return rows_from(taubench_spans())


def rows_from(spans: Sequence[RawSpan], tools: ToolSettings | None = None) -> tuple[Row, ...]:
    engine = Engine(Settings(hash_key="00" * 32, tools=tools or ToolSettings()), wall=None)
    engine.receive(spans)
    engine.flush(CloseReason.END_OF_INPUT)
    paths = PathTable()
    return tuple(row_of(run, paths) for run in sorted(engine.take_final(), key=lambda run: run.run_id))
