"""The recordings with several attempts at each task, as rows of one agent."""

from __future__ import annotations

import functools
import json
from typing import Any, Final

from otel_reliability import testing
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome, Run
from otel_reliability.windows.rows import PathTable, row_of
from tests.corpora.recordings import rebuilt, recording
from tests.shared import shared

GEMINI: Final = "corpora/multi_trial/gemini-2.5-flash_airline.json"
SWE: Final = "swe/sweagent_gpt4_lite_3trials.otlp.jsonl.gz"
TAUBENCH: Final = "taubench/gpt-4o_airline_4trials.otlp.jsonl.gz"


@functools.cache
def gemini_rows() -> tuple[Row, ...]:
    """The recorded calls of eight attempts at each of ten tasks; their four variants are taken as
    one agent.
    """
    paths = PathTable()
    runs = json.loads(shared(GEMINI).read_text())["runs"]
    return tuple(row_of(_run(number, one), paths) for number, one in enumerate(runs, 1))


def _run(number: int, recorded: dict[str, Any]) -> Run:
    calls = tuple(
        testing.call(
            tool, second, ok=ok, arguments=bytes.fromhex(arguments), effect=bytes.fromhex(effect)
        )
        for second, (tool, arguments, effect, ok) in enumerate(recorded["calls"])
    )
    outcome = Outcome.SUCCESS if recorded["success"] else Outcome.FAILURE
    path = [call.name for call in calls]
    return testing.run(path, number, tool_calls=calls, task_id=recorded["task"], outcome=outcome)


def swe_rows() -> tuple[Row, ...]:
    """The runs of a coding agent, three attempts at each of 276 tasks."""
    return rows_from(SWE)


def swe_rows_by_file() -> tuple[Row, ...]:
    """The same runs, their effects compared by the file that a call changes."""
    return rows_from(
        SWE, tools={"effect_key": dict.fromkeys(("edit", "create", "apply_patch"), "path")}
    )


@functools.cache
def taubench_rows() -> tuple[Row, ...]:
    """The runs of four attempts at each of fifty tasks."""
    return rows_from(TAUBENCH)


def rows_from(path: str, **settings: Any) -> tuple[Row, ...]:
    paths = PathTable()
    runs = rebuilt(recording(path).spans, **settings).runs
    return tuple(row_of(run, paths) for run in sorted(runs, key=lambda run: run.run_id))
