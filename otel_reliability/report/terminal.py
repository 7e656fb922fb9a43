"""The report on a terminal: which agent is worst, its score, why, and which data is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from otel_reliability.change.result import Result
from otel_reliability.report import sections, words
from otel_reliability.report.changes import ABOUT, SYMBOLS, lines
from otel_reliability.report.findings import EFFECTS
from otel_reliability.report.groups import agent_without_group
from otel_reliability.report.history import bars, failed_shares, sparkline
from otel_reliability.report.next_steps import MIN_POINTS, next_steps
from otel_reliability.report.sections import COLOURS, Section, dim, points_lost
from otel_reliability.report.text import agent_name, clean, count, listed, place
from otel_reliability.report.view import AgentComparison, AgentView, Baseline, Gap, ReportView

INDENT: Final = (0, 0, 0, 2)
MAX_DETAILED: Final = 10
"""Agents that are shown in full; the others have a line each."""
MAX_BRIEF: Final = 3
"""Agents of which verdict, reasons and next steps are shown; the others have a line each."""
MAX_COMMON: Final = 2
"""Sentences on what failing runs have in common, where details are not asked for."""
MAX_REASONS: Final = 3
"""Reasons of an agent where details are not asked for."""
MAX_LISTED: Final = 40
"""Agents that have a line."""
HISTORY_WIDTH: Final = 24


def render(
    report: ReportView, console: Console, *, details: bool = False, source: str = "FILE"
) -> None:
    """Print the report, or, with a baseline, the comparison. Of many agents, those with the lowest
    scores are shown.

    `details`: with every table, and what is missing; otherwise verdict, reasons and next steps.
    `source` is how a command line names the recording.
    """
    if report.baseline is not None:
        parts = _comparison(report.baseline)
    else:
        parts = _page(report) if details else _brief(report, source)
    for part in parts:
        console.print(part)
        console.print()


# --- Parts of all pages ---------------------------------------------------------------------------


def heading(text: str) -> Text:
    """Return the title of a section."""
    return Text.assemble(
        (text, "bold underline")
    )  # a style of the whole would underline the rest of a column too


def columns(titles: Sequence[str], align: str) -> Table:
    """Return a table without lines, whose columns are aligned as those of a `Section`. No cell is
    cut: what is too long goes on in the next line.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for title, letter in zip(titles, align, strict=True):
        header = dim(title) if table.columns else heading(title)
        table.add_column(
            header,
            justify="right" if letter == "r" else "left",
            no_wrap=letter in "nr",
            overflow="fold",
        )
    return table


def drawn(section: Section) -> RenderableType:
    """Return a section as a table, with its notes below."""
    table = columns(section.titles, section.align)
    for row in section.rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    notes = (dim(note) if isinstance(note, str) else note for note in section.notes)
    return Group(*([table] if section.rows else []), *notes)


def title(agent: AgentView) -> RenderableType:
    """Return the agent's name, and where it runs."""
    line = Table.grid(expand=True, padding=(0, 1, 0, 0))
    line.add_column(no_wrap=True)
    line.add_column(ratio=1)
    where = (
        [dim(place(agent.key))] if place(agent.key) else []
    )  # an empty column would leave no room for the line
    line.add_row(Text(agent_name(agent.key), "bold"), Rule(style="dim"), *where)
    return line


def missing_data(gaps: Sequence[tuple[str, Sequence[Gap]]]) -> RenderableType | None:
    """Return what the runs of these agents lack, each gap once for all of them; None where they
    lack nothing.
    """
    found: dict[str, list[tuple[str, Gap]]] = {}
    for name, lacking in gaps:
        for gap in lacking:
            found.setdefault(gap.missing, []).append((name, gap))
    lines: list[RenderableType] = [heading("Missing data, and how to add it")]
    for missing, every in found.items():
        of = sum(gap.of for _, gap in every)
        known = of - sum(gap.runs for _, gap in every)
        whose = "" if len(every) == len(gaps) else f" of {listed(name for name, _ in every)}"
        have = (f" ({known:,} of {count(of, 'run')}{whose})", "dim")
        lines.append(
            Padding(Text.assemble((missing, "bold"), have, f": {every[0][1].unlocks}"), INDENT)
        )
        remedies = dict.fromkeys(gap.remedy for _, gap in every)
        lines += [Padding(Text(remedy, "cyan"), (0, 0, 0, 4)) for remedy in remedies]
    return Group(*lines) if found else None


# --- The page -------------------------------------------------------------------------------------


def _brief(report: ReportView, source: str) -> Iterator[RenderableType]:
    """Yield verdict, reasons and next steps of the worst agents."""
    agents = words.worst_first(report.agents)
    yield from _without_agents(report, source)
    if len(agents) > 1:
        yield drawn(sections.overview(agents, MAX_LISTED))
    for agent in agents[:MAX_BRIEF]:
        steps = [Text(step) for step in next_steps(agent, source)]
        parts = [
            _score_lines(agent),
            *_reasons(agent),
            *([Group(heading("Do next"), *_numbered(steps))] if steps else []),
        ]
        yield Group(
            title(agent), *(row for part in parts for row in (Text(), Padding(part, INDENT)))
        )
    if len(agents) > MAX_BRIEF:
        yield dim(f"{count(len(agents) - MAX_BRIEF, 'more agent')}; --agent NAME shows one.")
    if agents:
        yield dim(
            "Every number and what data is missing: otel-reliability report --details " + source
        )
    yield _about_spans(report)


def _reasons(agent: AgentView) -> Iterator[RenderableType]:
    """Yield what failing runs have in common, and why runs fail or the score is lost: the first of
    each with one example.
    """
    lines = [Text(f"{one.sentence} ({words.chance(one)})") for one in agent.why[:MAX_COMMON]]
    reasons = [
        reason
        for reason in agent.findings.reasons
        if reason.points is None or reason.points >= MIN_POINTS
    ]
    for reason in reasons[: MAX_REASONS - min(len(lines), 1)]:
        cost = "" if reason.points is None else f" {points_lost(reason.points)}"
        lines.append(Text.assemble((f"{reason.title}{cost}: ", "bold"), reason.sentence))
        lines += [Text(f"  {detail}") for detail in reason.details[:1]]
    if lines:
        yield Group(heading("Why"), *(Padding(line, INDENT) for line in lines))


def _numbered(steps: Sequence[Text]) -> Iterator[RenderableType]:
    for number, step in enumerate(steps, 1):
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_row(f"{number}.", step)
        yield Padding(line, INDENT)


def _without_agents(report: ReportView, source: str = "FILE") -> Iterator[RenderableType]:
    if not report.agents and report.spans["received"]:
        yield Text(
            "No agent runs: none of the spans comes from a known agent framework.", "bold"
        ).append(f"\notel-reliability inspect {source} shows what they are.", "not bold")
    elif not report.agents:
        yield Text("No agent runs: there are no spans.", "bold")


def _about_spans(report: ReportView) -> RenderableType:
    spans, *limits = words.about_recording(report)
    return Group(dim(f"{spans}."), *(Text(f"{limit}.", "yellow") for limit in limits))


def _page(report: ReportView) -> Iterator[RenderableType]:
    agents = words.worst_first(report.agents)
    yield from _without_agents(report)
    if len(agents) > 1:
        yield drawn(sections.overview(agents, MAX_LISTED))
    for agent in agents[:MAX_DETAILED]:
        parts = [
            _score_lines(agent),
            *map(drawn, sections.data_quality(agent.data_quality)),
            *map(drawn, sections.request_groups(agent, brief=True)),
            *_common(agent),
            *map(drawn, sections.costs(agent)),
            *_why(agent),
        ]
        parts += map(drawn, sections.details(agent, brief=True))
        yield Group(
            title(agent), *(row for part in parts for row in (Text(), Padding(part, INDENT)))
        )
    if len(agents) > MAX_DETAILED:
        yield dim(
            f"{count(len(agents) - MAX_DETAILED, 'more agent')}; --agent NAME shows one "
            "in full, --format json all of them."
        )
    gaps = missing_data([(agent_name(agent.key), agent.missing) for agent in agents])
    if gaps is not None:
        yield gaps
    for section in sections.data_quality(report.data_quality):
        yield drawn(section)
    yield _about_spans(report)


def _score_lines(agent: AgentView) -> RenderableType:
    colour = "" if agent.grade is None else COLOURS[agent.grade]
    headline = (
        Text.assemble(("No score", "bold"), f": {words.meaning(agent)}")
        if agent.badge is None
        else Text.assemble((agent.badge, f"bold {colour}"), f"  {words.meaning(agent)}")
    )
    return Group(
        headline,
        *map(Text, words.about(agent)),
        *_history(agent),
        *_change(agent),
        *(Text(f"⚠ {caveat}", "yellow") for caveat in agent.caveats),
    )


def _history(agent: AgentView) -> Iterator[Text]:
    shares = failed_shares(agent.ends, HISTORY_WIDTH)
    if shares:
        about = f"  {words.about_ends(agent)}"
        yield Text.assemble("failed over time ", (f"▕{bars(shares)}▏", "bold"), (about, "dim"))
    scores = [point.score for point in agent.history]
    chart = sparkline(scores, HISTORY_WIDTH)
    if chart:
        least = min(scores)
        lowest = "" if least >= min(scores[0], scores[-1]) - 0.5 else f", lowest {least:.0f}"
        about = f"  from {scores[0]:.0f} to {scores[-1]:.0f}{lowest}"
        yield Text.assemble("score over time  ", (chart, "bold"), (about, "dim"))


def _change(agent: AgentView) -> Iterator[Text]:
    if agent.change is not None:
        symbol, colour = SYMBOLS[agent.change.result]
        changed = agent.change.result is Result.CHANGED
        first, *more = lines(agent.change)
        first.stylize("bold" if changed else "dim")
        yield Text.assemble((f"{symbol} ", colour), ("Behaviour: ", "dim"), first)
        if changed:
            yield from (Text.assemble("  ", line) for line in (*more, dim(ABOUT)))
        elif agent.change.note:
            yield Text.assemble("  ", dim(agent.change.note))


def _common(agent: AgentView) -> Iterator[RenderableType]:
    """Yield what failing runs have in common."""
    if agent.why_note:
        found = [Padding(Text(line), INDENT) for line in words.about_why(agent)]
        yield Group(heading("Why runs fail"), dim(f"{agent.why_note}."), *found)
    contrasts = words.about_contrasts(agent)
    if contrasts:
        parts: list[RenderableType] = [heading("Which runs stand out")]
        for note, lines in contrasts:
            parts += [dim(f"{note}."), *[Padding(Text(line), INDENT) for line in lines]]
        yield Group(*parts)


def _why(agent: AgentView) -> Iterator[RenderableType]:
    reasons = [
        reason for reason in agent.findings.reasons if reason.title != EFFECTS
    ]  # the table of tasks has them
    parts: list[RenderableType] = [heading("Why, and what to inspect")]
    for reason in reasons:
        cost = "" if reason.points is None else f"  {points_lost(reason.points)}"
        parts.append(Text.assemble((reason.title, "bold"), cost))
        parts.append(Padding(Text(reason.sentence), INDENT))
        parts += [Padding(Text(detail), (0, 0, 0, 4)) for detail in reason.details]
    if reasons:
        yield Group(*parts)


# --- Two recordings -------------------------------------------------------------------------------


def _comparison(baseline: Baseline) -> Iterator[RenderableType]:
    yield from map(_compared, baseline.agents)
    for keys, where in ((baseline.only_before, "before"), (baseline.only_after, "now")):
        if keys:
            yield dim(f"Only {where}: {listed((clean(key.agent) for key in keys), 10)}.")
    if not baseline.agents:
        yield Text(
            "No agent is in both recordings: agents are matched by service, environment and name.",
            "bold",
        )


def _compared(each: AgentComparison) -> RenderableType:
    badges = Text.assemble(*_badge(each.old), "  →  ", *_badge(each.new))
    sentence = Text(each.sentence, "bold" if each.differs else "")
    body = (sentence, Text(), badges, Text(), drawn(sections.comparison(each, brief=True)))
    agent = each.new
    if each.old.key != agent.key:  # groups of one agent
        agent = replace(agent, key=agent_without_group(agent.key))
    return Group(title(agent), *(Padding(part, INDENT) for part in body))


def _badge(agent: AgentView) -> tuple[tuple[str, str]]:
    if agent.grade is None or agent.badge is None:
        return (("no score", "dim"),)
    return ((agent.badge, COLOURS[agent.grade]),)
