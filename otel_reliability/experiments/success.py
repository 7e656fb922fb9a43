"""Success of an attempt, and the rule that decided it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from otel_reliability.experiments.process import Ended, run_process
from otel_reliability.experiments.tasks import Task
from otel_reliability.model.run import Outcome, Run

NO_ERROR: Final = "no error"
"""The rule where nothing says that an attempt succeeded: it ended without an error."""


class Success(NamedTuple):
    """The success of an attempt and its source: `timeout`, `exit status`, `check`, `expectation`,
    the source of a run's outcome, or `no error`. `error`: it ended in an error.
    """

    value: bool
    source: str
    error: bool = False


async def success_of(
    ended: Ended,
    runs: Iterable[Run],
    task: Task,
    check: Sequence[str],
    env: Mapping[str, str],
    limit: float,
) -> Success:
    """Return the success of an attempt. A time limit or an exit status other than 0 is a failure;
    otherwise the check and the expectation decide, else the telemetry.
    """
    if ended.exit_code != 0:
        source = "timeout" if ended.exit_code is None else "exit status"
        return Success(value=False, source=source, error=True)
    seen = of_runs(runs)
    if check:
        asked = {
            "id": task.id,
            "input": task.input,
            "output": ended.output,
            "expect": None if task.expectation is None else task.expectation._asdict(),
        }
        checked = await run_process(check, json.dumps(asked).encode(), env, limit)
        if checked.exit_code != 0:
            return Success(value=False, source="check", error=seen.error)
    if task.expectation is not None:
        holds = task.expectation.holds(ended.output)
        return Success(value=holds, source="expectation", error=seen.error)
    return Success(value=True, source="check", error=seen.error) if check else seen


def of_runs(runs: Iterable[Run]) -> Success:
    """Return what the telemetry of an attempt says: a failure of any top-level run is one, a
    success is one where no other run failed.
    """
    top = [run for run in runs if not run.nested]
    error = any(run.ended_in_error for run in top)
    for outcome in (Outcome.FAILURE, Outcome.SUCCESS):
        for run in top:
            if run.outcome is outcome:
                return Success(outcome is Outcome.SUCCESS, run.outcome_source, error)
    return Success(value=True, source=NO_ERROR, error=error)
