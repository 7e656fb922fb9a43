"""Dispositions of spans: each is counted once, by disposition and reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from otel_reliability.model.run import Run

Account: TypeAlias = tuple[str, str]
"""The fate of a span: (disposition, reason)."""
USED: Final[Account] = ("used", "")
NO_CONVENTION: Final[Account] = ("other", "no_convention")
NO_AGENT: Final[Account] = ("other", "no_agent")
BESIDE_AGENT: Final[Account] = ("other", "beside_agent")
NO_RUN: Final[Account] = ("other", "no_run")
DUPLICATE: Final[Account] = ("duplicate", "")
REPLAYED: Final[Account] = ("duplicate", "replay")
"""Steps that another attempt at the same run reports too."""
LATE: Final[Account] = ("late", "")
LOST_ANNOTATION: Final[Account] = ("annotation", "lost")
"""Annotated spans whose annotations joined no run. They are counted by what became of them, too."""
SEALED: Final[Account] = ("refused", "span_limit")


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
