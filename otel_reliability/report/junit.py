"""JUnit XML, which every CI server shows: a report's numbers as tests, and a gate's verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from otel_reliability.metrics.stability.tiers import Tier
from otel_reliability.report.change_page import name_of
from otel_reliability.report.gate import State, Unchanged, Verdict, summary
from otel_reliability.report.report import Report
from otel_reliability.report.scorecard import ALL_SPECS, Scorecard
from otel_reliability.report.text import agent_name, count, measured, place
from otel_reliability.report.xml import allowed

UNFIT: Final = frozenset({Tier.UNSTABLE, Tier.CRITICAL})
"""The tiers whose meaning is: not in production."""


def render(report: Report) -> str:
    """A suite for each agent, a test for each number; one without evidence is skipped, and says what it needs.

    A report demands nothing: a test fails only where the tier is UNSTABLE or CRITICAL, or a flag is set. To demand more is
    what a gate is for.
    """
    suites = Element("testsuites", name="otel-reliability report")
    for card in report.cards:
        suite = _suite(suites, f"{agent_name(card.key)} ({place(card.key)})")
        for name in ALL_SPECS:
            _number(suite, card, name)
    return _written(suites)


def render_gate(verdicts: Sequence[Verdict], unchanged: Sequence[Unchanged] = ()) -> str:
    """A test for each verdict. A target without evidence is an error: neither passed nor failed."""
    suites = Element("testsuites", name="otel-reliability gate")
    suite = _suite(suites, f"gate: {summary([*verdicts, *unchanged])}")
    for verdict in verdicts:
        _verdict(suite, verdict)
    for one in unchanged:
        _unchanged(suite, one)
    return _written(suites)


def of_whom(verdict: Verdict) -> str:
    """The agent and task of a verdict."""
    if verdict.card is None:
        return "the recording"
    task = "" if verdict.task is None else f", task {verdict.task}"
    return f"{agent_name(verdict.card.key)}{task}"


def _suite(suites: Element, name: str) -> Element:
    return SubElement(suites, "testsuite", name=allowed(name))


def _number(suite: Element, card: Scorecard, name: str) -> None:
    reading, spec = card.readings[name], ALL_SPECS[name]
    case = SubElement(suite, "testcase", classname=allowed(agent_name(card.key)), name=name)
    if reading.value is None:
        SubElement(case, "skipped", message=reading.note or f"no evidence; it needs {spec.evidence}")
        return
    fault = _fault(card, name)
    if fault:
        SubElement(case, "failure", message=fault, type=name)
    note = f" ({reading.note})" if reading.note else ""
    SubElement(case, "system-out").text = f"{measured(spec, reading.value)} of {count(reading.runs, 'run')}{note}"


def _fault(card: Scorecard, name: str) -> str:
    if name == "tier" and card.tier is not None and card.tier in UNFIT:
        return f"{card.badge}: {card.tier.meaning}"
    return f"set: {', '.join(card.flags)}" if name == "flag" and card.flags else ""


def _verdict(suite: Element, verdict: Verdict) -> None:
    name = f"{verdict.target.text} [{of_whom(verdict)}]"
    case = SubElement(suite, "testcase", classname="gate", name=allowed(name))
    value, runs = verdict.reading.value, count(verdict.reading.runs, "run")
    if verdict.state is State.MISSING:
        SubElement(case, "error", message=verdict.why, type="missing")
    elif verdict.state is State.FAILED:
        SubElement(case, "failure", message=f"{value:g}, {runs}", type="target").text = verdict.doubt
    else:
        SubElement(case, "system-out").text = " ".join(_present((f"{value:g}, {runs}.", verdict.doubt)))


def _unchanged(suite: Element, one: Unchanged) -> None:
    case = SubElement(suite, "testcase", classname="gate", name=allowed(f"no change [{name_of(one.finding)}]"))
    sentence = allowed(one.finding.sentence)
    if one.state is State.MISSING:
        SubElement(case, "error", message=sentence, type="missing")
    elif one.state is State.FAILED:
        SubElement(case, "failure", message=sentence, type="change")
    else:
        SubElement(case, "system-out").text = sentence


def _present(parts: Iterable[str]) -> list[str]:
    return [part for part in parts if part]


def _written(suites: Element) -> str:
    """With the counts that CI servers add up."""
    for suite in suites:
        _counted(suite)
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, encoding="unicode")}\n'


def _counted(suite: Element) -> None:
    suite.set("tests", str(len(suite)))
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(plural, str(sum(case.find(tag) is not None for case in suite)))
