"""What was found of changes, on a terminal and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.change.alarm import Alarm, Summary, ToolShift
from otel_reliability.change.compare import LEVEL, Comparison, SignalTest
from otel_reliability.change.detector import BLIND
from otel_reliability.change.recording import Judgement
from otel_reliability.change.verdict import Verdict
from otel_reliability.config import ChangeSettings
from otel_reliability.report.changes import Finding, summary
from otel_reliability.report.sections import INDENT, dim
from otel_reliability.report.text import agent_name, clean, count, instant, percent, place

MARKS: Final = {Verdict.CHANGED: ("●", "yellow"), Verdict.NO_CHANGE: ("✓", "green"), Verdict.NO_VERDICT: ("?", "dim")}
ORDER: Final = tuple(MARKS)


def render(findings: Sequence[Finding], settings: ChangeSettings, console: Console) -> None:
    """Print a sentence for each agent, those that changed first, and how far it can be trusted."""
    for finding in sorted(findings, key=lambda one: ORDER.index(one.verdict)):
        console.print(_agent(finding))
    console.print()
    console.print(Text(f"{count(len(findings), 'agent')}: {summary(findings)}", "bold"))
    for line in _caveats(findings, settings):
        console.print(dim(line))


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
    return {
        **_key(finding),
        "verdict": finding.verdict.value,
        "sentence": finding.sentence,
        **({"note": finding.note} if finding.note else {}),
        **_evidence(finding.found),
    }


def name_of(finding: Finding) -> str:
    """Whose finding it is, in one line.

    >>> from otel_reliability.model.run import AgentKey
    >>> name_of(Finding(AgentKey("", "shop", "", "b"), Verdict.CHANGED, "", earlier=AgentKey("", "shop", "", "a")))
    'b (before: a)'
    """
    if finding.key is None:
        return "the recording"
    name = agent_name(finding.key)
    if finding.earlier is None:
        return name
    earlier = finding.earlier
    return f"{name} (before: {agent_name(earlier) if earlier.agent != finding.key.agent else place(earlier)})"


def _agent(finding: Finding) -> RenderableType:
    mark, colour = MARKS[finding.verdict]
    where = "" if finding.key is None else place(finding.key)
    title = Text.assemble((f"{mark} ", colour), (name_of(finding), "bold"), ("  " + where if where else "", "dim"))
    lines: list[RenderableType] = [Padding(Text(finding.sentence), INDENT)]
    if finding.note:
        lines.append(Padding(dim(finding.note), INDENT))
    if isinstance(finding.found, Judgement) and finding.found.alarms:
        lines.append(Padding(dim(f"since then: {_look(finding, finding.found.alarms[-1])}"), INDENT))
    return Group(title, *lines)


def _look(finding: Finding, alarm: Alarm) -> str:
    """What shows the agent since the change."""
    name = "" if finding.key is None else finding.key.agent
    return f"report --agent {shlex.quote(clean(name))} --since {instant(alarm.told[0].since_ns)[:19]}Z"


def _caveats(findings: Sequence[Finding], settings: ChangeSettings) -> Iterator[str]:
    yield "Changed is not worse. A unit is a run, or a whole session where runs have one."
    if any(isinstance(finding.found, Judgement) for finding in findings):
        yield (
            f"While the work stays the same mix in random order, a false alarm comes once in {settings.runs_per_false_alarm:,.0f}"
            f" units or less often. Of the first {BLIND} units, and {BLIND} after each alarm, nothing can be told."
        )
    if any(isinstance(finding.found, Comparison) for finding in findings):
        yield f"Two recordings of the same behaviour at the same work are called different in at most {percent(LEVEL)} of cases."


def _key(finding: Finding) -> dict[str, Any]:
    if finding.key is None:
        return {"agent": None}
    namespace, name, environment, agent, extra = finding.key
    where = {"service_namespace": namespace or None, "service": name or None, "environment": environment or None}
    earlier = {} if finding.earlier is None else {"earlier_agent": finding.earlier.agent}
    return {**where, "agent": agent, **({"attributes": dict(extra)} if extra else {}), **earlier}


def _evidence(found: Judgement | Comparison | None) -> Mapping[str, Any]:
    match found:
        case Judgement():
            return {"units": found.units, "alarms": [_alarm(alarm) for alarm in found.alarms]}
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
            "since_unit": told.since_unit,
            "since": instant(told.since_ns),
            "before": _summary(told.before),
            "after": _summary(told.after),
        }
        for told in alarm.told
    ]
    return {"unit": alarm.unit, "noticed": instant(alarm.noticed_ns), "signals": signals, "tools": _tools(alarm.tools)}


def _test(test: SignalTest) -> dict[str, Any]:
    sides = {"before": _summary(test.before), "after": _summary(test.after)}
    return {"signal": test.signal, "p": test.p, "differs": test.differs, **sides}


def _tools(shifts: Sequence[ToolShift]) -> list[dict[str, Any]]:
    return [shift._asdict() for shift in shifts]


def _summary(summary: Summary | None) -> dict[str, float] | None:
    return None if summary is None else summary._asdict()
