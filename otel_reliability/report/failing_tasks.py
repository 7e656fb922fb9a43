"""Tasks that fail more often than the others, by more than chance.

Features of runs are contrasted over whole tasks, as attempts at one task are alike: a few tasks
show nothing there, though it is plain that one of them is what fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.report.text import clean, count, percent, trace_of
from otel_reliability.report.view import WhyFinding
from otel_reliability.statistics.hypergeometric import upper_tail

TASK: Final = "task"
"""The name of the feature."""
MAX_TASKS: Final = 3
LEVEL: Final = 0.01
"""p-value, adjusted for the number of tasks, up to which a task is named."""
MAX_RUNS: Final = 500
"""Runs that are examined, the newest."""
MAX_TRACES: Final = 3


def failing_tasks(rows: Sequence[Row], *, by_error: bool) -> list[WhyFinding]:
    """Return the tasks whose runs fail (`by_error`: end in an error) more often than those of the
    others, the most certain first. `rows` are undisturbed runs, oldest first.
    """
    known: dict[str, list[tuple[bool, str]]] = {}
    for row in rows[-MAX_RUNS:]:
        failed = fails(row, by_error=by_error)
        if row.task is not None and row.task != OTHER_TASK and failed is not None:
            known.setdefault(row.task, []).append((failed, row.run_id))
    every = [failed for runs in known.values() for failed, _ in runs]
    found: list[WhyFinding] = []
    for task, runs in known.items():
        failures = [run_id for failed, run_id in runs if failed]
        p = len(known) * upper_tail(len(failures), len(runs), sum(every), len(every))
        if p <= LEVEL:
            others = sum(every) - len(failures), len(every) - len(runs)
            found.append(_finding(task, failures, len(runs), others, p, by_error=by_error))
    return sorted(found, key=lambda one: (one.p, one.names))[:MAX_TASKS]


def fails(row: Row, *, by_error: bool) -> bool | None:
    """Return whether a run fails by its outcome (`by_error`: ends in an error); None: unknown."""
    if by_error:
        return row.ended_in_error
    return None if row.success is None else not row.success


def _finding(
    task: str,
    failures: Sequence[str],
    runs: int,
    others: tuple[int, int],
    p: float,
    *,
    by_error: bool,
) -> WhyFinding:
    do = "end in an error" if by_error else "fail"
    shares = len(failures) / runs, others[0] / others[1]
    ours = f"{percent(shares[0])} ({len(failures):,} of {count(runs, 'run')})"
    theirs = f"{percent(shares[1])} ({others[0]:,} of {others[1]:,})"
    return WhyFinding(
        feature=TASK,
        names=(clean(task),),
        sentence=f"runs of task {clean(task)} {do} in {ours} against {theirs}",
        shares=shares,
        runs=(runs, others[1]),
        p=p,
        p_within=None,
        traces=tuple(map(trace_of, reversed(failures[-MAX_TRACES:]))),
    )
