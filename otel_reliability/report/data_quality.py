"""Data quality: the flaws of an agent's telemetry and of a recording, one line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from otel_reliability.model.flaws import (
    DUPLICATE_SPANS,
    FLAWS,
    INVENTED_SESSIONS,
    LATE_SPANS,
    LOST_ANNOTATIONS,
    ORPHAN_SPANS,
    UNREAD_SPANS,
)
from otel_reliability.model.row import Row
from otel_reliability.report.view import QualityFinding

MIN_INVENTED: Final = 3
"""Runs with a conversation id of their own from which the ids may be made up."""
SPANS: Final = "spans"
RUNS: Final = "runs"


def quality_of(counts: Mapping[str, int], of: int) -> list[QualityFinding]:
    """Return the findings of these numbers by kind, in the order of the table; `of` runs or spans.

    >>> [(one.finding, one.count) for one in quality_of({"root_missing": 2}, 5)]
    [('root span missing', 2)]
    """
    return [
        QualityFinding(
            flaw.kind,
            flaw.finding,
            counts[flaw.kind],
            of,
            SPANS if flaw.of_spans else RUNS,
            flaw.affects,
            flaw.remedy,
            flaw.decisive,
        )
        for flaw in FLAWS
        if counts.get(flaw.kind)
    ]


def quality_of_rows(rows: Sequence[Row]) -> list[QualityFinding]:
    """Return the findings about the undisturbed runs of one agent."""
    runs = [row for row in rows if row.undisturbed]
    sessions = [row.session_id for row in runs if row.session_id is not None]
    return quality_of(counted((row.flaws for row in runs), sessions), len(runs))


def counted(flaws: Iterable[Iterable[str]], sessions: Sequence[str]) -> Counter[str]:
    """Return the number of runs by kind of flaw, from the flaws of each and from their conversation
    ids.
    """
    found = Counter(kind for each in flaws for kind in each)
    if are_invented(len(sessions), len(set(sessions))):
        found[INVENTED_SESSIONS] = len(sessions)
    return found


def are_invented(runs: int, sessions: int) -> bool:
    """Return whether each of several runs has a conversation id of its own."""
    return runs == sessions >= MIN_INVENTED


def quality_of_spans(
    accounts: Mapping[tuple[str, str], int], received: int, unread: int, lost_annotations: int = 0
) -> list[QualityFinding]:
    """Return the findings about spans that belong to no run, from what became of them. `unread`
    could not be read, `lost_annotations` hold annotations that joined no run.
    """
    late = sum(number for (what, _), number in accounts.items() if what == "late")
    duplicate = sum(number for (what, _), number in accounts.items() if what == "duplicate")
    counts = {
        UNREAD_SPANS: unread,
        LATE_SPANS: late,
        ORPHAN_SPANS: accounts.get(("other", "beside_agent"), 0),
        DUPLICATE_SPANS: duplicate,
        LOST_ANNOTATIONS: lost_annotations,
    }
    return quality_of(counts, received)
