"""The metrics of coding agents as plain batch formulas, like `reference`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from otel_reliability.config import Settings
from otel_reliability.model.coding import CodingTotals
from otel_reliability.model.row import Row
from otel_reliability.model.run import Outcome
from tests.metrics.reference import Formula, baseline


def coding(rows: Iterable[Row]) -> list[CodingTotals]:
    return [row.coding for row in baseline(rows) if row.coding is not None]


def ratio(above: str, below: str) -> Formula:
    """Return the ratio of two sums over the prompts that read or changed files."""

    def formula(rows: Sequence[Row], settings: Settings) -> float | None:
        found = coding(rows)
        total = sum(getattr(one, below) for one in found)
        return sum(getattr(one, above) for one in found) / total if total else None

    return formula


def per_prompt(of: Callable[[Row], float | None]) -> Formula:
    """Return the mean over all prompts of an agent of which one read or changed files."""

    def formula(rows: Sequence[Row], settings: Settings) -> float | None:
        values = [value for row in baseline(rows) if (value := of(row)) is not None]
        return sum(values) / len(values) if values and coding(rows) else None

    return formula


def edits(row: Row) -> int | None:
    if row.tool_calls is None:
        return None
    return 0 if row.coding is None else row.coding.edits


NAIVE: Mapping[str, Formula] = {
    "reads_before_edit": ratio("reads_before_edit", "editing_prompts"),
    "tested_edit_share": ratio("tested_prompts", "testable_prompts"),
    "failed_edit_share": ratio("failed_edits", "edits"),
    "edits_per_prompt": per_prompt(edits),
    "cancelled_share": per_prompt(lambda row: float(row.outcome is Outcome.CANCELLED)),
    "tokens_per_prompt": per_prompt(lambda row: row.tokens),
}
