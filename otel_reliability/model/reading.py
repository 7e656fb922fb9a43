"""Readings of metrics about a window, and the specifications of metrics."""

from __future__ import annotations

from typing import Literal, NamedTuple

Direction = Literal["lower", "higher", "neutral"]
IntervalMethod = Literal["none", "share", "runs", "tasks", "comparison"]
"""Method of the confidence interval of a metric: none at all (counts, flags), Wilson's for a
share of runs, the bootstrap for a mean over runs or over tasks, the jackknife for what compares
runs or combines several numbers.
"""


class Reading(NamedTuple):
    """A value and the number of runs behind it. `value` None: no data, which is neither 0 nor 1.

    `parts` names what an aggregate was made of, `note` says in a few words what a reader must know
    of this value.
    """

    value: float | None
    runs: int
    parts: tuple[str, ...] = ()
    note: str = ""


NO_DATA = Reading(None, 0)


class MetricSpec(NamedTuple):
    """One line of the metric table: instruments, Prometheus text, docs, panels and alerts are made
    from it.

    `unit` stands in braces (`{ratio}`), or is `s`; `required_data` says what a run must carry to
    count; `improve` what to do. `emitted`: it is a live gauge; the others cost too much for that,
    and stand in reports, pages, the API and gates only.
    """

    name: str
    title: str
    family: str
    direction: Direction
    description: str
    formula: str
    required_data: str
    source: str
    improve: str
    unit: str = "{ratio}"
    low: float | None = 0.0
    high: float | None = 1.0
    interval: IntervalMethod = "none"
    stability: str = "development"
    emitted: bool = True
