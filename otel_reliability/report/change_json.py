"""What was found of changes, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from otel_reliability.change.alarm import Alarm, Summary, ToolShift
from otel_reliability.change.compare import Comparison, SignalTest
from otel_reliability.change.recording import RecordingResult
from otel_reliability.config import ChangeSettings
from otel_reliability.report.changes import Finding, summary
from otel_reliability.report.text import instant


def render_json(findings: Sequence[Finding], settings: ChangeSettings) -> str:
    """All that was found, as one JSON object."""
    return json.dumps(document(findings, settings), indent=2, ensure_ascii=False) + "\n"


def document(findings: Sequence[Finding], settings: ChangeSettings) -> dict[str, Any]:
    """All that was found, in plain values."""
    return {
        "summary": summary(findings),
        "signals": list(settings.signals),
        "runs_per_false_alarm": settings.runs_per_false_alarm,
        "agents": [finding_object(finding) for finding in findings],
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    """One agent, in plain values."""
    return {**_key(finding), **verdict_object(finding)}


def verdict_object(finding: Finding) -> dict[str, Any]:
    """What is said of the agent, and the evidence."""
    return {
        "verdict": finding.verdict.value,
        "sentence": finding.sentence,
        **({"note": finding.note} if finding.note else {}),
        **_evidence(finding.found),
    }


def _key(finding: Finding) -> dict[str, Any]:
    if finding.key is None:
        return {"agent": None}
    namespace, name, environment, agent, extra = finding.key
    where = {"service_namespace": namespace or None, "service": name or None, "environment": environment or None}
    earlier = {} if finding.earlier is None else {"earlier_agent": finding.earlier.agent}
    return {**where, "agent": agent, **({"attributes": dict(extra)} if extra else {}), **earlier}


def _evidence(found: RecordingResult | Comparison | None) -> Mapping[str, Any]:
    match found:
        case RecordingResult():
            return {"units": found.observations, "alarms": [_alarm(alarm) for alarm in found.alarms]}
        case Comparison():
            tests = [_test(test) for test in found.tests]
            return {"tests": tests, "tools": _tools(found.tools), "shared_tasks": found.shared_tasks}
        case None:
            return {}


def _alarm(alarm: Alarm) -> dict[str, Any]:
    signals = [
        {
            "signal": told.signal,
            "evidence": told.evidence,
            "since_unit": told.since_observation,
            "since": instant(told.since_ns),
            "before": _summary(told.before),
            "after": _summary(told.after),
        }
        for told in alarm.signals
    ]
    return {
        "unit": alarm.observation,
        "noticed": instant(alarm.noticed_ns),
        "signals": signals,
        "tools": _tools(alarm.tools),
    }


def _test(test: SignalTest) -> dict[str, Any]:
    sides = {"before": _summary(test.before), "after": _summary(test.after)}
    return {"signal": test.signal, "p": test.p, "differs": test.differs, **sides}


def _tools(shifts: Sequence[ToolShift]) -> list[dict[str, Any]]:
    return [shift._asdict() for shift in shifts]


def _summary(summary: Summary | None) -> dict[str, float] | None:
    if summary is None:
        return None
    return {"units": summary.observations, "mean": summary.mean, "median": summary.median}
