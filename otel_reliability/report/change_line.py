"""What was found of one agent's changes, in the lines that stand wherever it is told."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from rich.text import Text

from otel_reliability.change.recording import RecordingResult
from otel_reliability.change.result import Result
from otel_reliability.report.changes import Finding
from otel_reliability.report.text import clean, instant

MARKS: Final = {Result.CHANGED: ("●", "yellow"), Result.NO_CHANGE: ("✓", "green"), Result.NO_RESULT: ("?", "dim")}

BEHAVIOUR: Final = "Behaviour: "
UNITS: Final = "a unit is a run, or a whole session where runs have one; changed is not worse (explain change)"


def told(finding: Finding) -> Iterator[Text]:
    """The sentence, what it was measured against, and how to see the agent since it changed."""
    yield Text(finding.sentence)
    if finding.note:
        yield Text(finding.note, "dim")
    look = since_then(finding)
    if look:
        yield Text(f"since then: {look}", "dim")


def beside_the_score(finding: Finding) -> Iterator[Text]:
    """The same, marked, on as few lines as will do."""
    mark, colour = MARKS[finding.verdict]
    first, *more = told(finding)
    first.stylize("bold" if finding.verdict is Result.CHANGED else "dim")
    yield Text.assemble((f"{mark} ", colour), (BEHAVIOUR, "dim"), first)
    if finding.verdict is Result.CHANGED:
        yield from (Text.assemble("  ", line) for line in (*more, Text(UNITS, "dim")))


def since_then(finding: Finding) -> str:
    """What shows the agent since its last change; empty where none is known of."""
    if finding.key is None or not isinstance(finding.found, RecordingResult) or not finding.found.alarms:
        return ""
    since = instant(finding.found.alarms[-1].signals[0].since_ns)[:19]
    return f"report --agent {shlex.quote(clean(finding.key.agent))} --since {since}Z"
