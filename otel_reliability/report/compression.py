"""The behaviour of an agent before and after its context was compressed.

Each run is compared with itself, because runs with a compression are long, and long runs differ
from others in any case. Where a compression lies between two runs of a session, the run before it
is compared with the run after it. A difference does not show that the compression caused it: later
calls of a long run may differ without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from otel_reliability.model.row import CallTotals, Row
from otel_reliability.report.text import count, percent
from otel_reliability.report.view import CompressionEffect, CompressionView, ScoreReason
from otel_reliability.statistics.intervals import MIN_RUNS
from otel_reliability.statistics.permutation import paired_p
from otel_reliability.statistics.significance import SIGNIFICANCE_LEVEL, holm

COMPRESSION: Final = "Context compression"
MEASURES: Final = {
    "failed": "failed",
    "retries": "were retries",
    "repeats": "repeated one that had succeeded",
}
"""Count of calls, and how a sentence says it."""
SEED: Final = 0
_NOTHING: Final = CallTotals(0, 0, 0, 0)


def compression_of(rows: Sequence[Row]) -> CompressionView | None:
    """Return the compressions of these runs, which are in order; None without any. Effects need
    `MIN_RUNS` runs.
    """
    found = [row.compressions for row in rows if row.compressions is not None]
    if not found:
        return None
    pairs = list(_pairs(rows))
    return CompressionView(
        compressions=sum(one.number for one in found),
        failed=sum(one.failed for one in found),
        runs=sum(one.number > 0 for one in found),
        of=len(rows),
        tokens_before=sum(one.tokens_before for one in found),
        tokens_after=sum(one.tokens_after for one in found),
        compared=len(pairs),
        effects=_effects(pairs) if len(pairs) >= MIN_RUNS else (),
    )


def compression_reasons(found: CompressionView | None) -> Iterator[ScoreReason]:
    """Yield the findings in words."""
    if found is None:
        return
    saved = (
        f", from {found.tokens_before:,} to {found.tokens_after:,} tokens in all"
        if found.tokens_before
        else ""
    )
    failed = f"; {count(found.failed, 'attempt')} failed" if found.failed else ""
    sentence = (
        f"The context was compressed {count(found.compressions, 'time')} in "
        f"{found.runs:,} of {count(found.of, 'run')}"
        f"{saved}{failed}."
    )
    details = [_words(one, found.compared) for one in found.effects]
    if not details:
        details = [
            (
                f"Before and after are compared from {MIN_RUNS} runs with calls on both "
                f"sides; here {found.compared:,}."
            )
        ]
    yield ScoreReason(COMPRESSION, None, sentence, tuple(details))


def _words(effect: CompressionEffect, runs: int) -> str:
    chance = (
        f"more than chance, p = {effect.p:.2g}"
        if effect.more_than_chance
        else "no more than chance"
    )
    return (
        f"After a compression {effect.after:,} of {count(effect.calls_after, 'call')} "
        f"{MEASURES[effect.name]}, before "
        f"{effect.before:,} of {effect.calls_before:,} "
        f"({percent(effect.after / effect.calls_after)} and "
        f"{percent(effect.before / effect.calls_before)}, {count(runs, 'run')}; {chance})"
    )


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[CallTotals, CallTotals]]:
    """Yield the calls before and after the first compression of each run, where there are calls on
    both sides.
    """
    sessions: dict[str, list[Row]] = {}
    for row in rows:
        sessions.setdefault(row.run_id if row.session_id is None else row.session_id, []).append(
            row
        )
    for session in sessions.values():
        for previous, row, following in zip(
            [None, *session], session, [*session[1:], None], strict=False
        ):
            found = row.compressions
            if found is not None and found.number:
                before = found.before if found.before.calls else _all(previous)
                after = found.after if found.after.calls else _all(following)
                if before.calls and after.calls:
                    yield before, after


def _all(row: Row | None) -> CallTotals:
    """Return all calls of a run beside a compression; none of one that has a compression of its
    own.
    """
    if row is None or row.compressions is not None or row.retries is None:
        return _NOTHING
    return CallTotals(
        row.tool_calls or 0, row.failed_calls or 0, row.retries.number, row.retries.repeats
    )


def _effects(pairs: Sequence[tuple[CallTotals, CallTotals]]) -> tuple[CompressionEffect, ...]:
    sides = {
        name: [
            [(getattr(side, name), side.calls) for side in every]
            for every in zip(*pairs, strict=True)
        ]
        for name in MEASURES
    }
    chances = holm([paired_p(before, after, SEED) for before, after in sides.values()])
    return tuple(
        CompressionEffect(name, *_sums(before), *_sums(after), p, p <= SIGNIFICANCE_LEVEL)
        for (name, (before, after)), p in zip(sides.items(), chances, strict=True)
    )


def _sums(side: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(number for number, _ in side), sum(calls for _, calls in side)
