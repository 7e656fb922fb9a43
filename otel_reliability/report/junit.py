"""JUnit XML, which every CI server shows: a report's numbers as tests, and a gate's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from otel_reliability.metrics import ALL_SPECS
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.metrics.success.verdict import Verdict
from otel_reliability.report.changes import ChangeResult
from otel_reliability.report.gate import OF_CHANGE, TargetResult, TargetState, summary
from otel_reliability.report.text import agent_name, allowed, count, measured, place
from otel_reliability.report.view import AgentView, ReportView
from otel_reliability.report.words import coverage, meaning, missing

UNFIT: Final = frozenset({Tier.UNSTABLE, Tier.CRITICAL})
"""The tiers that mean: not in production."""


def render(report: ReportView) -> str:
    """Return a suite for each agent, a test for each number; one without data is skipped, and says
    what it needs.

    A report demands nothing: a test fails only where the verdict is failing, the tier is UNSTABLE
    or CRITICAL, or a flag is set. A gate demands more.
    """
    suites = Element("testsuites", name="otel-reliability report")
    for agent in report.agents:
        suite = SubElement(
            suites, "testsuite", name=f"{agent_name(agent.key)} ({place(agent.key)})"
        )
        for name in ALL_SPECS:
            _number(suite, agent, name)
    return _written(suites)


def render_gate(results: Sequence[TargetResult], changes: Sequence[ChangeResult] = ()) -> str:
    """Return a test for each result. A target without data is an error: neither
    passed nor failed.
    """
    suites = Element("testsuites", name="otel-reliability gate")
    suite = SubElement(suites, "testsuite", name=f"gate: {summary(results, changes)}")
    for result in results:
        _case(
            suite,
            f"{result.target.text} [{result.subject}]",
            result.state,
            "target",
            result.sentence,
            "\n".join(filter(None, (result.doubt, *result.reasons))),
        )
    for one in changes:
        state = OF_CHANGE[one.change.result]
        _case(suite, f"no change [{one.name}]", state, "change", one.change.sentence)
    return _written(suites)


def _number(suite: Element, agent: AgentView, name: str) -> None:
    reading = agent.metrics[name]
    spec = ALL_SPECS[name]
    case = SubElement(suite, "testcase", classname=agent_name(agent.key), name=name)
    if reading.value is None:
        SubElement(case, "skipped", message=missing(spec, reading))
        return
    fault = _fault(agent, name)
    if fault:
        SubElement(case, "failure", message=fault, type=name)
    note = coverage(agent) if name == "score" else reading.note
    behind = "; ".join(filter(None, (count(reading.runs, "run"), note)))
    SubElement(case, "system-out").text = f"{measured(spec, reading.value)} ({behind})"


def _fault(agent: AgentView, name: str) -> str:
    if name == "verdict" and agent.verdict is Verdict.FAILING:
        return f"{agent.badge}: {meaning(agent)}"
    if name == "tier" and agent.tier is not None and agent.tier in UNFIT:
        badge = ", ".join(filter(None, (agent.badge, coverage(agent))))
        return f"{badge}: {meaning(agent)}"
    return f"set: {', '.join(agent.flags)}" if name == "flag" and agent.flags else ""


def _case(
    suite: Element, name: str, state: TargetState, kind: str, message: str, doubt: str = ""
) -> None:
    case = SubElement(suite, "testcase", classname="gate", name=name)
    if state is TargetState.MISSING:
        SubElement(case, "error", message=message, type="missing")
    elif state is TargetState.FAILED:
        SubElement(case, "failure", message=message, type=kind).text = doubt
    else:
        SubElement(case, "system-out").text = f"{message}. {doubt}" if doubt else message


def _written(suites: Element) -> str:
    """Return the document with the counts that CI servers add up, and without characters that XML
    cannot hold.
    """
    for element in suites.iter():
        element.text = allowed(element.text or "") or None
        element.attrib.update({name: allowed(value) for name, value in element.attrib.items()})
    for suite in suites:
        suite.set("tests", str(len(suite)))
        for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(plural, str(sum(case.find(tag) is not None for case in suite)))
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, encoding="unicode")}\n'
