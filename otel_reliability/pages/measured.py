"""Every number of an agent: its value, its interval, the runs behind it, what it means; or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.model.reading import MetricSpec, Reading
from otel_reliability.report.metric_groups import EVALUATION, PASSES, SESSION_GAUGES, STABILITY, made_of
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.text import clean, measured


class Line(NamedTuple):
    """One number. `absent` says why there is no value; `meaning`, `formula` and `improve` are for who asks."""

    name: str
    title: str
    value: str
    between: str
    method: str
    runs: int
    absent: str
    note: str
    meaning: str
    formula: str
    improve: str


class Group(NamedTuple):
    """Numbers that belong together; `known` of them have a value. `notes` say what aggregates were made of."""

    title: str
    lines: tuple[Line, ...]
    known: int
    notes: tuple[str, ...]


GROUPS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("The score and its parts", ("score", *PENALTIES)),
    ("Beside the score", STABILITY),
    ("Evaluation", EVALUATION),
    ("Repeated attempts", ("pass_at_k", "pass_hat_k", *PASSES)),
    ("Sessions", SESSION_GAUGES),
)


DIMENSIONS: Final = ("reliability", "consistency", "predictability", "robustness", "safety")
"""What the evaluation comes to."""


def dimensions_of(card: Scorecard) -> list[Line]:
    """The dimensions of the evaluation; none where there is no evidence for any."""
    lines = [_line(ALL_SPECS[name], card) for name in DIMENSIONS]
    return lines if any(not line.absent for line in lines) else []


def groups_of(card: Scorecard) -> list[Group]:
    """All numbers, those with a value first in each group."""
    return [_group(title, names, card) for title, names in GROUPS]


def _group(title: str, names: Sequence[str], card: Scorecard) -> Group:
    lines = [_line(ALL_SPECS[name], card) for name in names]
    known = [name for name in names if card.readings[name].value is not None]
    ordered = sorted(lines, key=lambda line: bool(line.absent))
    return Group(title, tuple(ordered), len(known), tuple(made_of(card.readings, known)))


def _line(spec: MetricSpec, card: Scorecard) -> Line:
    reading, interval = card.readings[spec.name], card.intervals.get(spec.name)
    return Line(
        name=spec.name,
        title=spec.title,
        value=measured(spec, reading.value),
        between=range_of(card, spec.name),
        method="" if interval is None else interval.method,
        runs=reading.runs,
        absent=missing_of(spec, reading),
        note=clean(reading.note, 300) if reading.value is not None else "",
        meaning=spec.description,
        formula=spec.formula,
        improve=spec.improve,
    )


def missing_of(spec: MetricSpec, reading: Reading) -> str:
    """Why there is no value; empty where there is one.

    >>> missing_of(ALL_SPECS["path_entropy"], Reading(None, 0))
    'no evidence: it needs 2 runs of a task with observable tools'
    """
    if reading.value is not None:
        return ""
    return f"no evidence: {clean(reading.note, 300)}" if reading.note else f"no evidence: it needs {spec.evidence}"


def range_of(card: Scorecard, name: str) -> str:
    """The interval of a number at 95 % confidence; empty where there is none."""
    interval = card.intervals.get(name)
    if interval is None:
        return ""
    low, high = (measured(ALL_SPECS[name], bound) for bound in (interval.low, interval.high))
    return f"{low} – {high}"
