"""The groups of an agent's runs that do the same kind of work, the one that goes wrong most first.

A group is a task, else the runs whose telemetry names the same input, else those with alike
requests. The last have no name of their own, as no text of a request is kept: they have a letter,
and a person may give them a name. A group keeps its letter while its mean stays near to what it
was (`learned`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.metrics._support.sums import Counts
from otel_reliability.model.letters import letter
from otel_reliability.model.row import OTHER_TASK, Path, Row
from otel_reliability.report.text import trace_of
from otel_reliability.report.view import RequestGroup
from otel_reliability.statistics.intervals import wilson
from otel_reliability.statistics.likeness import matched, mean_of

TASK: Final = "task"
INPUT: Final = "input"
REQUESTS: Final = "requests"
"""Kinds of groups: runs of one task, of one named input, with alike requests."""
MAX_GROUPS: Final = 50
"""Groups of a view; those that go wrong most."""
MAX_KNOWN: Final = 200
"""Groups with alike requests of an agent that are remembered; the latest seen, and those with a
name."""
MAX_NAME: Final = 80
EXAMPLES: Final = 3
MIN_FOR_TREND: Final = 4
"""Runs with a known outcome from which a group has a trend."""

_Key: TypeAlias = tuple[str, str | int]


class KnownGroup(NamedTuple):
    """A group with alike requests: its number, which it keeps, the mean of its requests as they
    were last, when its last run had ended (ns), and the name that a person gave it.
    """

    number: int
    mean: bytes
    seen_ns: int
    name: str = ""


Known: TypeAlias = tuple[KnownGroup, ...]


def learned(known: Known, rows: Iterable[Row]) -> Known:
    """Return the known groups as the runs of a window leave them: those that it has again, with
    their means of now, and new ones.
    """
    groups = _alike(rows)
    found = {group.number: group for group in known}
    following = max(found, default=-1) + 1
    matches = _matches(list(groups.values()), known)
    for members, match in zip(groups.values(), matches, strict=True):
        mean = mean_of(_requests(members))
        seen_ns = members[-1].end_ns
        if match is None:
            found[following] = KnownGroup(following, mean, seen_ns)
            following += 1
        else:
            found[match.number] = match._replace(mean=mean, seen_ns=max(match.seen_ns, seen_ns))
    latest = sorted(found.values(), key=lambda group: (not group.name, -group.seen_ns))
    return tuple(sorted(latest[:MAX_KNOWN]))


def renamed(known: Known, identity: str, name: str) -> Known | None:
    """Return the groups, the one of this letter with this name (empty: without); None where no
    group has the letter.
    """
    text = " ".join(name.split())[:MAX_NAME]
    if not any(letter(group.number) == identity for group in known):
        return None
    return tuple(
        group._replace(name=text) if letter(group.number) == identity else group for group in known
    )


def request_groups(rows: Sequence[Row], known: Known) -> list[RequestGroup]:
    """Return the groups of at least 2 undisturbed runs, the one that goes wrong most first: by the
    lower bound of its share of failures, then of errors, then by the entropy of its paths.
    """
    groups: dict[_Key, list[Row]] = defaultdict(list)
    for row in rows:
        key = work_of(row)
        if key is not None and row.undisturbed:
            groups[key].append(row)
    names = names_of(rows, known)
    found = [
        _group(kind, *_named(kind, key, names), members)
        for (kind, key), members in groups.items()
        if len(members) >= 2
    ]
    return sorted(found, key=_worst_first)[:MAX_GROUPS]


def names_of(rows: Iterable[Row], known: Known) -> dict[int, KnownGroup]:
    """Return which known group each input group of a window is, by its number there."""
    groups = _alike(rows)
    matches = _matches(list(groups.values()), known)
    return {
        number: match for number, match in zip(groups, matches, strict=True) if match is not None
    }


def members_of(rows: Iterable[Row], known: Known, identity: str) -> list[Row]:
    """Return the runs of the group of an identity: a letter, or the name of a task or an input."""
    ordered = list(rows)
    names = names_of(ordered, known)
    found: list[Row] = []
    for row in ordered:
        key = work_of(row)
        if key is not None and row.undisturbed and _named(*key, names)[0] == identity:
            found.append(row)
    return found


def work_of(row: Row) -> _Key | None:
    """Return the kind and the key of the group of a run; None where it has none."""
    if row.task is not None:
        return None if row.task == OTHER_TASK else (TASK, row.task)
    return None if row.group is None else (REQUESTS, row.group)


def _named(kind: str, key: str | int, names: Mapping[int, KnownGroup]) -> tuple[str, str]:
    """Return the identity and the name of a group."""
    if isinstance(key, str):
        return key, key
    known = names.get(key)
    return ("", "") if known is None else (letter(known.number), known.name)


def _alike(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Return the members of each group of at least 2 runs with alike requests, by its number."""
    groups: dict[int, list[Row]] = {}
    for row in rows:
        if row.group is not None and row.request is not None:
            groups.setdefault(row.group, []).append(row)
    return {number: members for number, members in groups.items() if len(members) >= 2}


def _requests(rows: Iterable[Row]) -> list[bytes]:
    return [row.request for row in rows if row.request is not None]


def _matches(groups: Sequence[Sequence[Row]], known: Known) -> list[KnownGroup | None]:
    found = matched([_requests(rows) for rows in groups], [group.mean for group in known])
    return [None if at is None else known[at] for at in found]


def _group(kind: str, identity: str, name: str, rows: Sequence[Row]) -> RequestGroup:
    outcomes = [row.success for row in rows if row.success is not None]
    ends = [row.ended_in_error for row in rows if row.ended_in_error is not None]
    paths = [row.path for row in rows if row.path is not None]
    retries = [row.retries.number for row in rows if row.retries is not None]
    tokens = [row.tokens for row in rows if row.tokens is not None]
    costs = [row.cost for row in rows if row.cost is not None]
    counts = Counts[str]()
    for path in paths:
        counts.count(path.code)
    distinct = {path.code: path for path in paths}.values()
    # of equals by their names: codes depend on the order in which paths were first seen
    usual = max(distinct, key=lambda path: (counts[path.code], path.names), default=None)
    return RequestGroup(
        id=identity,
        kind=kind,
        name=name or None,
        runs=len(rows),
        known=len(outcomes),
        success_rate=fmean(outcomes) if outcomes else None,
        error_rate=fmean(ends) if ends else None,
        distinct_paths=len(counts) if paths else None,
        path_entropy=counts.evenness() if len(paths) >= 2 else None,
        retries=fmean(retries) if retries else None,
        tokens=fmean(tokens) if tokens else None,
        cost=fmean(costs) if costs else None,
        trend=_trend(outcomes),
        usual_path=() if usual is None else usual.names,
        trace_ids=_examples(rows, usual),
    )


def _trend(outcomes: Sequence[bool]) -> float | None:
    """Return how much more often the later half of the runs succeeded than the earlier one."""
    if len(outcomes) < MIN_FOR_TREND:
        return None
    half = len(outcomes) // 2
    return fmean(outcomes[-half:]) - fmean(outcomes[:half])


def _examples(rows: Sequence[Row], usual: Path | None) -> tuple[str, ...]:
    """Return traces to look at: of runs that failed, then of those that took an unusual path, the
    newest first.
    """

    def interest(row: Row) -> tuple[bool, bool, bool, int, str]:
        return (
            row.success is not False,
            row.ended_in_error is not True,
            row.path is None or usual is None or row.path.code == usual.code,
            -row.end_ns,
            row.run_id,
        )

    chosen = sorted(rows, key=interest)
    return tuple(dict.fromkeys(trace_of(row.run_id) for row in chosen))[:EXAMPLES]


def _worst_first(group: RequestGroup) -> tuple[float, float, float, int, str, str]:
    """Return what groups are sorted by: failures, then errors, each as many as there are at least,
    then path entropy and runs, the most first.
    """
    failure_rate = None if group.success_rate is None else 1 - group.success_rate
    return (
        -_least_share(failure_rate, group.known),
        -_least_share(group.error_rate, group.runs),
        -(group.path_entropy or 0.0),
        -group.runs,
        group.kind,
        group.id,
    )


def _least_share(share: float | None, runs: int) -> float:
    """Return the lower Wilson bound of a share of runs; 0 where it is not known."""
    return 0.0 if share is None else wilson(round(share * runs), runs)[0]
