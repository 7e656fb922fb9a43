"""What was found of changes, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.change.compare import LEVEL, Comparison
from otel_reliability.change.detector import BLIND
from otel_reliability.change.recording import RecordingResult
from otel_reliability.config import ChangeSettings
from otel_reliability.report.change_line import MARKS, told
from otel_reliability.report.changes import Finding, summary
from otel_reliability.report.sections import INDENT, dim
from otel_reliability.report.text import agent_name, count, percent, place

ORDER: Final = tuple(MARKS)


def render(findings: Sequence[Finding], settings: ChangeSettings, console: Console) -> None:
    """Print a sentence for each agent, those that changed first, and how far it can be trusted."""
    for finding in sorted(findings, key=lambda one: ORDER.index(one.verdict)):
        console.print(_agent(finding))
    console.print()
    console.print(Text(f"{count(len(findings), 'agent')}: {summary(findings)}", "bold"))
    for line in _caveats(findings, settings):
        console.print(dim(line))


def name_of(finding: Finding) -> str:
    """Whose finding it is, in one line.

    >>> from otel_reliability.change.result import Result
    >>> from otel_reliability.model.run import AgentKey
    >>> name_of(Finding(AgentKey("", "shop", "", "b"), Result.CHANGED, "", earlier=AgentKey("", "shop", "", "a")))
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
    return Group(title, *(Padding(line, INDENT) for line in told(finding)))


def _caveats(findings: Sequence[Finding], settings: ChangeSettings) -> Iterator[str]:
    yield "Changed is not worse. A unit is a run, or a whole session where runs have one. More: otel-reliability explain change"
    if any(isinstance(finding.found, RecordingResult) for finding in findings):
        yield (
            f"While the work stays the same mix in random order, a false alarm comes once in {settings.runs_per_false_alarm:,.0f}"
            f" units or less often. Of the first {BLIND} units, and {BLIND} after each alarm, nothing can be told."
        )
    if any(isinstance(finding.found, Comparison) for finding in findings):
        yield f"Two recordings of the same behaviour at the same work are called different in at most {percent(LEVEL)} of cases."
