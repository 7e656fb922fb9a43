"""Tasks that fail more often than the others, by more than chance.

Features of runs are contrasted over whole tasks, as attempts at one task are alike: a few tasks
show nothing there, though it is plain that one of them is what fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Final

from otel_reliability.model.row import OTHER_TASK, Row
from otel_reliability.report.text import clean, count, percent, trace_of
from otel_reliability.report.view import WhyFinding

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
        failed = row.ended_in_error if by_error else _is_failed(row)
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


def upper_tail(failed: int, runs: int, all_failed: int, all_runs: int) -> float:
    """Return the probability of at least so many failures in a part of the runs, if the failures
    were spread at random over all of them (hypergeometric; Fisher's exact test, one-sided).

    >>> round(upper_tail(5, 5, 5, 10) * 252)
    1
    """
    most = min(runs, all_failed)
    ways = (
        comb(all_failed, here) * comb(all_runs - all_failed, runs - here)
        for here in range(failed, most + 1)
    )
    return sum(ways) / comb(all_runs, runs)


def _is_failed(row: Row) -> bool | None:
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
