"""Everything the page of one agent shows, in plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.metrics.stability.tiers import Tier, rounded
from otel_reliability.model.row import Row
from otel_reliability.pages.calls import CallLine, calls_of
from otel_reliability.pages.course import Point
from otel_reliability.pages.fleet import AgentLine, id_of, short
from otel_reliability.pages.flow import USUAL, Flow, Steps, flow_of, usual_of
from otel_reliability.pages.hurts import hurt_of
from otel_reliability.pages.look import AgentLook, Changes
from otel_reliability.pages.measured import Group, Line, dimensions_of, groups_of, missing_of, range_of
from otel_reliability.pages.pressure import Pressure, pressure_of
from otel_reliability.pages.run_lines import RunLine, UsualPaths, run_line
from otel_reliability.pages.spark import Curve, curve
from otel_reliability.pages.task_lines import TaskLine, task_lines
from otel_reliability.report.caveats import caveats_of
from otel_reliability.report.gaps import Gap, gaps_of
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.sentences import about_outcomes, about_runs, about_score, judged
from otel_reliability.report.text import MINUS, agent_name, number, place
from otel_reliability.report.why import Reason, reasons_of
from otel_reliability.windows.session import SessionScores

MOST_FLOWS: Final = 3
"""Tasks whose paths are drawn by themselves, those whose runs part most."""
MOST_SESSIONS: Final = 10
ODD: Final = "Runs unlike the others"
"""What `why` calls them."""


class Penalty(NamedTuple):
    """One part of the score. `filled` and `most` are points: what it costs, and the most it can; None: no evidence."""

    name: str
    title: str
    points: str
    filled: float | None
    most: float
    start: float
    value: str
    between: str
    runs: int
    sentence: str
    details: tuple[str, ...]
    heavy: bool


class AgentView(NamedTuple):
    """One agent, ready to be written down."""

    id: str
    name: str
    place: str
    tier: Tier | None
    score: str
    judged: str
    about: Sequence[str]
    caveats: Sequence[str]
    changes: Changes
    points: Sequence[Point]
    curve: Curve | None
    penalties: Sequence[Penalty]
    oddest: Sequence[str]
    flow: Flow | None
    task_flows: Sequence[Flow]
    runs: Sequence[RunLine]
    calls: Sequence[CallLine]
    pressure: Pressure | None
    tasks: Sequence[TaskLine]
    sessions: Sequence[SessionScores]
    dimensions: Sequence[Line]
    groups: Sequence[Group]
    gaps: Sequence[Gap]
    line: AgentLine


def agent_view(look: AgentLook) -> AgentView:
    """What there is to see of an agent."""
    card = look.card
    usual = _usual_by_task(card.rows)
    return AgentView(
        id=id_of(card.key),
        name=agent_name(card.key),
        place=place(card.key),
        tier=card.tier,
        score="–" if card.score is None else str(rounded(card.score)),
        judged=judged(card),
        about=[*([about_score(card)] if card.score is not None else []), about_runs(card), about_outcomes(card)],
        caveats=caveats_of(card),
        changes=look.changes,
        points=look.course,
        curve=curve(look.course),
        penalties=list(_penalties(card)),
        oddest=[line for reason in reasons_of(card) if reason.title == ODD for line in reason.details],
        flow=flow_of(card.rows),
        task_flows=_task_flows(card),
        runs=[run_line(run, distance, usual) for run, distance in reversed(look.recent)],
        calls=calls_of(run for run, _ in look.recent),
        pressure=pressure_of(card.rows),
        tasks=task_lines(card),
        sessions=_worst(card.sessions),
        dimensions=dimensions_of(card),
        groups=groups_of(card),
        gaps=gaps_of(card.rows),
        line=agent_line(look),
    )


def agent_line(look: AgentLook) -> AgentLine:
    """The line of an agent that was looked at, for the table of a report."""
    card = look.card
    return AgentLine(
        key=card.key,
        id=id_of(card.key),
        name=agent_name(card.key),
        place=place(card.key),
        score=card.score,
        note=short(card.readings["score"].note),
        runs=card.runs,
        hurt=hurt_of(card.readings.__getitem__),
        last_ns=card.end_ns,
        points=look.course,
        changed=bool(look.changes.marks),
    )


def _penalties(card: Scorecard) -> Iterator[Penalty]:
    """The parts of the score, the dearest first. `start` is where a part begins on the way down from 100."""
    told: dict[str, Reason] = {}
    for reason in reasons_of(card):
        told.setdefault(reason.title, reason)
    start = 100.0
    for cost in card.findings.costs:
        spec, reading = ALL_SPECS[cost.name], card.readings[cost.name]
        points = cost.points or 0.0
        start -= points
        reason = told.get(spec.title)
        absent = missing_of(spec, reading)
        yield Penalty(
            name=cost.name,
            title=spec.title,
            points="" if cost.points is None else f"{MINUS}{points:.1f}" if round(points, 1) else "0",
            filled=cost.points,
            most=cost.most,
            start=round(max(start, 0.0), 2),
            value=number(reading.value),
            between=range_of(card, cost.name),
            runs=reading.runs,
            sentence=absent or ("Nothing is lost here." if reason is None else reason.sentence),
            details=() if reason is None else reason.details,
            heavy=points >= PENALTIES[cost.name] / 4,
        )


def _usual_by_task(rows: Sequence[Row]) -> UsualPaths:
    taken: dict[str | None, Counter[Steps]] = {}
    for row in rows:
        if row.path is not None and row.baseline:
            for task in {row.task, None}:
                taken.setdefault(task, Counter())[row.path.names] += 1
    frequent = {task: usual_of(paths) for task, paths in taken.items()}
    return {task: path if taken[task][path] >= USUAL * taken[task].total() else None for task, path in frequent.items()}


def _task_flows(card: Scorecard) -> list[Flow]:
    tasks = [one.task for one in card.findings.divergences if one.task is not None][:MOST_FLOWS]
    flows = (flow_of((row for row in card.rows if row.task == task), task) for task in tasks)
    return [flow for flow in flows if flow is not None]


def _worst(sessions: Sequence[SessionScores]) -> list[SessionScores]:
    def order(one: SessionScores) -> tuple[bool, float, str]:
        return (one.reliability is None, 0.0 if one.reliability is None else one.reliability.score, one.session_id)

    return nsmallest(MOST_SESSIONS, sessions, key=order)
