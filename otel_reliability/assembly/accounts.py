"""Accounts of assembly: the disposition of each span, once; runs that close; losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias

from msgspec import Struct, field

from otel_reliability.model.run import Run

Account: TypeAlias = tuple[str, str]
"""The fate of a span: (disposition, reason)."""
DISPOSITIONS: Final = frozenset({"used", "other", "late", "duplicate", "refused"})
USED: Final[Account] = ("used", "")
NO_CONVENTION: Final[Account] = ("other", "no_convention")
NO_AGENT: Final[Account] = ("other", "no_agent")
BESIDE_AGENT: Final[Account] = ("other", "beside_agent")
NO_RUN: Final[Account] = ("other", "no_run")
DUPLICATE: Final[Account] = ("duplicate", "")
REPLAYED: Final[Account] = ("duplicate", "replay")
"""Steps that another attempt at the same run reports too."""
LATE: Final[Account] = ("late", "")
SEALED: Final[Account] = ("refused", "span_limit")
NO_MEMORY: Final[Account] = ("refused", "open_bytes")
"""Spans of a large trace from a hurried caller, while no other comes to close it."""

Loss: TypeAlias = tuple[str, str]
"""A loss: what was lost, and why."""
EVALUATION: Final = "evaluation"
"""An evaluation that joined no run."""
LATE_EVALUATION: Final[Loss] = (EVALUATION, "late")
EXCESS_EVALUATION: Final[Loss] = (EVALUATION, "limit")
WITHOUT_RUN: Final[Loss] = (EVALUATION, "no_run")
WITHOUT_TARGET: Final[Loss] = (EVALUATION, "no_target")
LOST_ANNOTATION: Final[Loss] = ("annotation", "no_run")
"""An annotated span whose annotations joined no run."""
EXCESS_REOPENABLE: Final[Loss] = ("limit", "reopenable_bytes")
"""A trace that became final before its time."""
EXCESS_OTHERS: Final[Loss] = ("limit", "other_spans")
"""A span that only connects others, which was not kept."""
EXCESS_IDS: Final[Loss] = ("limit", "closed_ids")
"""A final trace that was forgotten before its time."""


class Accounts(Struct, eq=False):
    """The counters of an assembler.

    - `spans`: each span once, by what became of it and why: `used`, `other` (no_convention,
      beside_agent, no_agent, no_run), `late`, `duplicate`, `refused`.
    - `closed`: runs that closed, by reason.
    - `losses`: evaluations, annotations and memory that were lost, by what and why.
    """

    spans: Counter[Account] = field(default_factory=Counter[Account])
    closed: Counter[str] = field(default_factory=Counter[str])
    losses: Counter[Loss] = field(default_factory=Counter[Loss])


def accounts_of(
    runs: Iterable[Run], spans: int, others: int, unclaimed: Iterable[Account]
) -> dict[Account, int]:
    """Return what became of spans, each counted once. `others` only connect spans; `unclaimed`: of
    work that is in no run.
    """
    used = sum([run.span_count for run in runs if not run.nested])
    found: dict[Account, int] = {USED: used, NO_CONVENTION: others, NO_RUN: spans - used - others}
    for account in unclaimed:
        found[account] = found.get(account, 0) + 1
        found[NO_RUN] -= 1
    return found
