"""Tasks and kinds of request that fail more often than the others, by more than chance.

Features of runs are contrasted over whole tasks, as attempts at one task are alike: a few tasks
show nothing there, though it is plain that one of them is what fails. Kinds of request are no
feature of what runs do: all of them may take one path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from otel_reliability.model.letters import letter
from otel_reliability.model.row import Row
from otel_reliability.report.request_groups import TASK, KnownGroup, work_of
from otel_reliability.report.text import clean, count, percent, trace_of
from otel_reliability.report.view import WhyFinding
from otel_reliability.statistics.hypergeometric import upper_tail

MAX_FINDINGS: Final = 3
LEVEL: Final = 0.01
"""p-value, adjusted for the number of tasks and kinds, up to which one is named."""
MAX_RUNS: Final = 500
"""Runs that are examined, the newest."""
MAX_TRACES: Final = 3


def failing_work(
    rows: Sequence[Row], names: Mapping[int, KnownGroup], *, by_error: bool
) -> list[WhyFinding]:
    """Return the tasks, and the kinds of request of runs without one, that fail (`by_error`: end in
    an error) more often than the others, the most certain first.

    `rows` are undisturbed runs, oldest first; `names` is which known kind each input group is.
    """
    known: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    for row in rows[-MAX_RUNS:]:
        failed = fails(row, by_error=by_error)
        kind, key = work_of(row) or ("", "")
        if isinstance(key, int):
            group = names.get(key)
            key = "" if group is None else group.name or letter(group.number)
        if key and failed is not None:
            known.setdefault((kind, key), []).append((failed, row.run_id))
    every = [failed for runs in known.values() for failed, _ in runs]
    found: list[WhyFinding] = []
    for (kind, key), runs in known.items():
        failures = [run_id for failed, run_id in runs if failed]
        p = len(known) * upper_tail(len(failures), len(runs), sum(every), len(every))
        if p <= LEVEL:
            others = sum(every) - len(failures), len(every) - len(runs)
            found.append(_finding(kind, key, failures, len(runs), others, p, by_error=by_error))
    return sorted(found, key=lambda one: (one.p, one.feature, one.names))[:MAX_FINDINGS]


def fails(row: Row, *, by_error: bool) -> bool | None:
    """Return whether a run fails by its outcome (`by_error`: ends in an error); None: unknown."""
    if by_error:
        return row.ended_in_error
    return None if row.success is None else not row.success


def _finding(
    kind: str,
    key: str,
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
    name = clean(key)
    which = f"runs of task {name}" if kind == TASK else f"requests of kind {name}"
    return WhyFinding(
        feature=kind,
        names=(name,),
        sentence=f"{which} {do} in {ours} against {theirs}",
        shares=shares,
        runs=(runs, others[1]),
        p=p,
        p_within=None,
        traces=tuple(map(trace_of, reversed(failures[-MAX_TRACES:]))),
    )
