"""The inspection on a terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.model.crossing import LINK, RUN_KEY
from otel_reliability.model.row import Row
from otel_reliability.report.gaps import gaps_of
from otel_reliability.report.inspection import Inspection, Told, Unknown
from otel_reliability.report.sections import INDENT, columns, dim, heading
from otel_reliability.report.text import agent_name, clean, count, percent

ROWS: Final = 20
"""Lines of each table; the JSON has all."""
WORDS: Final = {LINK: "the links", RUN_KEY: "the run_key"}


def render(inspection: Inspection, rows: Sequence[Sequence[Row]], console: Console) -> None:
    """Print what was found. `rows`: the rows of each agent's window, for what is missing."""
    for part in _page(inspection, rows):
        console.print(part)
        console.print()


def _page(inspection: Inspection, rows: Sequence[Sequence[Row]]) -> Iterator[RenderableType]:
    yield _spans(inspection)
    if inspection.unknown:
        yield _unknown(inspection.unknown)
    yield _runs(inspection.agents)
    if inspection.tools:
        yield _tools(inspection)
    yield _missing(rows)


def _spans(inspection: Inspection) -> RenderableType:
    table = columns("Spans recognised, by convention", "as", "scope", "spans", numbers=1)
    for found, number in inspection.recognised[:ROWS]:
        table.add_row(found.convention, found.kind, clean(found.scope), f"{number:,}")
    known = sum(number for _, number in inspection.recognised)
    total = dim(f"{known:,} of {count(inspection.spans, 'span')} recognised; `other` is known, and no step of a run.")
    return Group(table, *_more(len(inspection.recognised)), total, *_crossing(inspection))


def _crossing(inspection: Inspection) -> Iterator[RenderableType]:
    """What one process joins across traces, and workers on Kafka do not."""
    if inspection.crossing:
        told = " and ".join(f"{WORDS[what]} of {count(number, 'span')}" for what, number in inspection.crossing.items())
        yield Text(f"⚠ Runs that cross traces, by {told}: workers on Kafka do not join them (docs/scale.md).", "yellow")


def _unknown(unknown: Sequence[Unknown]) -> RenderableType:
    table = columns("Not recognised, by scope", "spans", numbers=1)
    for found in unknown[:ROWS]:
        mark = " ← looks like agents' work" if found.suspected else ""
        table.add_row(Text.assemble(clean(found.scope), (mark, "yellow")), f"{found.spans:,}")
    offers = [Padding(_offer(found), INDENT) for found in unknown[:3] if found.suspected]
    closing = dim("A dialect nobody knows yet can be added in one file: docs/recipes.md.")
    return Group(table, *_more(len(unknown)), *offers, *([closing] if offers else []))


def _offer(found: Unknown) -> RenderableType:
    """What an unknown dialect offers: names of its spans, keys of its attributes."""
    names = ", ".join(f"{clean(name, 40)} ×{number:,}" for name, number in found.names)
    keys = ", ".join(f"{clean(key, 60)} ×{number:,}" for key, number in found.keys)
    return Group(Text(clean(found.scope), "bold"), dim(f"spans: {names}"), dim(f"attributes: {keys or 'none'}"))


def _runs(agents: Sequence[Told]) -> RenderableType:
    if not agents:
        return Group(
            heading("Runs"), Text("No run was found: no span says it is an agent, and no tool call stands alone.")
        )
    table = columns("Runs, by agent", "runs", "nested", "calls seen", "outcome", "tokens", "task", "session", numbers=7)
    for told in agents[:ROWS]:
        table.add_row(agent_name(told.key), *_shares(told))
    return Group(table, *_more(len(agents)), *(Text(f"⚠ {note}", "yellow") for told in agents for note in _notes(told)))


def _shares(told: Told) -> Iterator[str]:
    yield f"{told.runs:,}"
    yield f"{told.nested:,}"
    of = told.runs + told.nested
    for number in (told.observed + told.from_messages, told.outcomes, told.tokens, told.tasks):
        yield percent(number / of) if of else "–"
    yield percent(told.with_session / told.runs) if told.runs else "–"


def _notes(told: Told) -> Iterator[str]:
    """What a reader must know of an agent's runs."""
    name = agent_name(told.key)
    if told.invented_sessions:
        yield f"{name}: every run has a conversation id of its own; the instrumentation makes them up, so no session is real."
    if told.from_messages:
        yield f"{name}: the calls of {count(told.from_messages, 'run')} were read from model messages, without their failures."
    if told.unobservable:
        yield f"{name}: the tools of {count(told.unobservable, 'run')} cannot be observed; they say nothing of paths."
    if told.incomplete:
        yield f"{name}: {count(told.incomplete, 'run')} without a root span; they say nothing of paths."
    if told.arguments < told.calls:
        yield f"{name}: arguments of calls are unknown in {count(told.calls - told.arguments, 'run')}; retries are told by tool."


def _tools(inspection: Inspection) -> RenderableType:
    table = columns("Tools called", "the world", "because", "calls", numbers=1)
    for tool in inspection.tools[:ROWS]:
        effect = Text("changes it", "bold") if tool.verdict.effect else Text("only looks", "dim")
        table.add_row(clean(tool.name), effect, tool.verdict.why, f"{tool.calls:,}")
    return Group(
        table, *_more(len(inspection.tools)), dim("Wrong? Say so, here or in a settings' file:"), *_remedies(inspection)
    )


def _remedies(inspection: Inspection) -> Iterator[RenderableType]:
    """What corrects a verdict, with a tool that is there, so that it can be pasted."""
    for effect, setting, means in ((True, "tools.reads", "only looks"), (False, "tools.effects", "changes it")):
        name = next((tool.name for tool in inspection.tools if tool.verdict.effect is effect), None)
        if name is not None:
            line = shlex.quote(f"{setting}={json.dumps([clean(name)], ensure_ascii=False)}")
            yield Padding(Text.assemble((f"--set {line}", "cyan"), (f"  {clean(name)} {means}", "dim")), INDENT)


def _missing(rows: Sequence[Sequence[Row]]) -> RenderableType:
    """What the runs do not tell, what it would unlock, and the line that adds it; an agent's gap counts with the others'."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for of_agent in rows:
        for gap in gaps_of(of_agent):
            key = (gap.missing, gap.unlocks, gap.remedy)
            lacking, of = found.get(key, (0, 0))
            found[key] = (lacking + gap.runs, of + gap.of)
    if not found:
        return Group(heading("Missing"), Text("Nothing: every number has its evidence."))
    lines: list[RenderableType] = [heading("Missing, and the line that adds it")]
    for (missing, unlocks, remedy), (lacking, of) in found.items():
        lines.append(Text.assemble((missing, "bold"), dim(f" in {lacking:,} of {of:,} runs, for {unlocks}")))
        lines.append(Padding(Text(remedy), INDENT))
    return Group(*lines)


def _more(number: int) -> list[RenderableType]:
    return [dim(f"{number - ROWS:,} more; --format json has all.")] if number > ROWS else []
