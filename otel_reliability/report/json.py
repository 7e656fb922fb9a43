"""The report as a JSON document: for programs, so every number in full and every name as it came.

Its schema is docs/report.schema.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from otel_reliability.metrics.passes import ReliabilitySummary
from otel_reliability.metrics.sessions import SessionScore
from otel_reliability.model.reading import Reading
from otel_reliability.model.run import Outcome
from otel_reliability.report.beside import NOTHING, Beside
from otel_reliability.report.caveats import caveats_of
from otel_reliability.report.change_json import verdict_object
from otel_reliability.report.changes import Finding
from otel_reliability.report.comparison import CORRECTION, LEVEL, Change, Comparison
from otel_reliability.report.gaps import gaps_of
from otel_reliability.report.metric_groups import METHODOLOGY
from otel_reliability.report.report import Report
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.text import instant, trace_of
from otel_reliability.report.why import reasons_of
from otel_reliability.windows.session import SessionScores

VERSION: Final = 1
"""Raised when a field changes its meaning or goes; new fields come without."""

Object = dict[str, Any]

_LINE: Final = "\n" + 8 * " "
_NEXT: Final = ",\n"
"""Between the sessions of an agent, and within."""


def render(report: Report, comparison: Comparison | None = None, beside: Beside = NOTHING) -> str:
    """The document, indented; the same report gives the same text."""
    return "".join(pieces(report, comparison, beside))


def pieces(report: Report, comparison: Comparison | None = None, beside: Beside = NOTHING) -> Iterator[str]:
    """The same piece by piece, its sessions one by one: there may be tens of thousands, a kilobyte each."""
    place = uuid4().hex
    parts = _text(document(report, comparison, beside, place)).split(_text(place))
    for part, card in zip(parts, (card for card in report.cards if card.sessions), strict=False):
        yield part
        for number, scores in enumerate(card.sessions):
            yield f"{(number and _NEXT) or ''}{_text(_session(scores))}".replace("\n", _LINE)
    yield f"{parts[-1]}\n"


def _text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def document(
    report: Report, comparison: Comparison | None = None, beside: Beside = NOTHING, place: str | None = None
) -> Object:
    """The document as an object. With `place`, that stands for an agent's sessions, where it has any."""
    made: Object = {
        "version": VERSION,
        "agents": [
            agent_object(card, report.settings.metrics.profile, [place] if place and card.sessions else None)
            | _changed(beside.changes.get(card.key))
            for card in report.cards
        ],
        "spans": dict(report.spans),
        "span_reasons": _nested(report.reasons),
        "problems": dict(report.problems),
        "evidence_refused": _nested(report.evidence_refused),
        "notes": list(report.notes),
    }
    return made if comparison is None else made | {"baseline": _comparison(comparison)}


def _changed(finding: Finding | None) -> Object:
    return {} if finding is None else {"change": verdict_object(finding)}


def key_object(card: Scorecard) -> Object:
    """Whose numbers they are."""
    key = card.key
    return {
        "service_namespace": key.service_namespace or None,
        "service": key.service_name or None,
        "environment": key.environment or None,
        "agent": key.agent,
        **({"attributes": dict(key.extra)} if key.extra else {}),
    }


def agent_object(card: Scorecard, profile: str, sessions: Sequence[object] | None = None) -> Object:
    """All that is told of one agent; with `sessions`, these in the place of its own."""
    return {
        **key_object(card),
        "runs": card.runs,
        "perturbed_runs": dict(card.perturbed),
        "start": instant(card.start_ns),
        "end": instant(card.end_ns),
        "runs_left_out": card.left_out,
        "score": card.score,
        "score_coverage": card.readings["score_coverage"].value,
        "score_note": card.readings["score"].note,
        "tier": None if card.tier is None else card.tier.name,
        "badge": card.badge,
        "flags": list(card.flags),
        "outcomes": {outcome.value: card.outcomes.get(outcome, 0) for outcome in Outcome}
        | {"by_status": card.by_status},
        "metrics": {name: _reading(card.readings[name]) | _interval(card, name) for name in ALL_SPECS},
        "evaluation": _evaluation(card.readings, profile),
        "passes": _passes(card),
        "sessions": [_session(scores) for scores in card.sessions] if sessions is None else sessions,
        "tasks": [task._asdict() for task in card.tasks],
        "findings": _findings(card),
        "missing": [gap._asdict() for gap in gaps_of(card.rows)],
        "caveats": caveats_of(card),
    }


def _reading(reading: Reading) -> Object:
    more: Object = {"parts": list(reading.parts)} if reading.parts else {}
    return {"value": reading.value, "runs": reading.runs, **more, **({"note": reading.note} if reading.note else {})}


def _interval(card: Scorecard, name: str) -> Object:
    interval = card.intervals.get(name)
    return {} if interval is None else {"low": interval.low, "high": interval.high, "method": interval.method}


def _evaluation(readings: Mapping[str, Reading], profile: str) -> Object:
    names = [name for name, spec in ALL_SPECS.items() if spec.family in METHODOLOGY]
    return {
        "profile": profile,
        **{name: readings[name].value for name in names},
        "parts": {name: list(readings[name].parts) for name in names if readings[name].parts},
    }


def _passes(card: Scorecard) -> Object:
    passes = card.passes
    return {
        "pass_hat_k": {str(k): reading.value for k, reading in passes.hat.items()},
        "pass_at_k": {str(k): reading.value for k, reading in passes.at.items()},
        "runs": next((reading.runs for reading in passes.hat.values()), 0),
        "tasks": [_summary(task, summary) for task, summary in sorted(passes.summaries.items(), key=_by_task)],
    }


def _by_task(item: tuple[str | None, ReliabilitySummary]) -> str:
    return item[0] or ""


def _summary(task: str | None, summary: ReliabilitySummary) -> Object:
    return {"task_id": task, **summary._asdict()}


def _session(scores: SessionScores) -> Object:
    return {
        "id": scores.session_id,
        "runs": list(scores.runs),
        "start": instant(scores.start_ns),
        "end": instant(scores.end_ns),
        "reliability": _score(scores.reliability),
        "consistency": _score(scores.consistency),
        "reliability_detail": _detail(scores.reliability),
        "consistency_detail": _detail(scores.consistency),
        "derived": list(scores.derived),
    }


def _score(score: SessionScore | None) -> float | None:
    return None if score is None else score.score


def _detail(score: SessionScore | None) -> Object | None:
    return None if score is None else {"reason": score.reason, "metadata": score.metadata}


def _findings(card: Scorecard) -> Object:
    found = card.findings
    return {
        "costs": [cost._asdict() for cost in found.costs],
        "reasons": [{**reason._asdict(), "details": list(reason.details)} for reason in reasons_of(card)],
        "tools": [{**use._asdict(), "rare": use.rare} for use in found.tools],
        "divergences": [
            {"task_id": one.task, "shared": list(one.shared), "turns": [turn._asdict() for turn in one.turns]}
            for one in found.divergences
        ],
        "decisions": [{**one._asdict(), "branches": dict(one.branches)} for one in found.decisions],
        "exploding_runs": _runs([one._asdict() for one in found.explosions]),
        "runs_nearest_limit": _runs([{"run_id": one.run_id, "token_pressure": one.value} for one in found.fullest]),
        "runs_unlike_others": _runs([{"run_id": one.run_id, "path_distance": one.value} for one in found.oddest]),
        "tasks_by_effects": [
            {**one._asdict(), "partings": [parting._asdict() for parting in one.partings]} for one in found.effects
        ],
    }


def _runs(runs: Sequence[Object]) -> list[Object]:
    """With the trace id of each."""
    return [{"run_id": run["run_id"], "trace_id": trace_of(run["run_id"]), **run} for run in runs]


def _nested(counts: Mapping[tuple[str, str], int]) -> Object:
    """Counts by (what, why) as {what: {why: count}}; those without a reason are in their totals already."""
    found: Object = {}
    for (what, why), number in sorted(counts.items()):
        if why and number:
            found.setdefault(what, {})[why] = number
    return found


def _comparison(comparison: Comparison) -> Object:
    return {
        "agents": [
            {
                **key_object(each.new),
                "metrics": {
                    change.name: _change(change)
                    | {"before": _reading(change.before) | _interval(each.old, change.name)}
                    | {"after": _reading(change.after) | _interval(each.new, change.name)}
                    for change in each.changes
                },
                "chance": {"level": LEVEL, "correction": CORRECTION, "compared": each.weighed},
            }
            for each in comparison.agents
        ],
        "only_before": [key_object(card) for card in comparison.only_before],
        "only_after": [key_object(card) for card in comparison.only_after],
    }


def _change(change: Change) -> Object:
    return {
        "change": change.difference,
        "verdict": change.verdict,
        "more_than_chance": change.clear,
    }
