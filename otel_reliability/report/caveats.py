"""What a reader must know before trusting a scorecard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from otel_reliability.metrics.stability.flag import TOKEN_PRESSURE_HIGH
from otel_reliability.model.run import Outcome
from otel_reliability.report.scorecard import Scorecard
from otel_reliability.report.text import count, percent

WARNINGS: Final = ("unknown", "left out")
"""Words of notes that limit what a value says; other notes explain it."""


def caveats_of(card: Scorecard) -> list[str]:
    """One sentence each."""
    return [*_of_flags(card), *_of_window(card), *_of_outcomes(card), *_of_readings(card)]


def _of_flags(card: Scorecard) -> Iterator[str]:
    pressure = card.readings["token_budget_pressure"].value
    if TOKEN_PRESSURE_HIGH in card.flags and pressure is not None:
        yield f"UNSTABLE by token pressure: the context window is {percent(pressure)} full on average ({TOKEN_PRESSURE_HIGH})"


def _of_window(card: Scorecard) -> Iterator[str]:
    if card.left_out:
        yield f"{count(card.left_out, 'older run')} left out: the report looks at the newest {len(card.rows):,}"
    effective = card.readings["window.effective_runs"].value
    if effective is not None and round(effective) < card.runs:
        yield f"the runs were sampled at different rates: they are worth {effective:.0f} equally sampled ones"
    weighted = sum(row.weight for row in card.rows)
    if weighted > len(card.rows):
        yield f"the runs are a sample and stand for about {weighted:,}; the numbers are of the runs as they are"


def _of_outcomes(card: Scorecard) -> Iterator[str]:
    if card.by_status:
        yield (
            f"{card.by_status} of {count(card.outcomes[Outcome.SUCCESS], 'success')} rest on no more than an end without "
            "error (outcome.fallback: status): pass rates built on them are too high"
        )


def _of_readings(card: Scorecard) -> Iterator[str]:
    """The warnings of readings, each once with all that it is about."""
    told: dict[str, list[str]] = {}
    for name, reading in card.readings.items():
        if reading.value is not None and any(word in reading.note for word in WARNINGS):
            told.setdefault(reading.note, []).append(name)
    for note, names in told.items():
        yield f"{note} ({', '.join(names)})"
