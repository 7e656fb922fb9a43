"""An inspection of a recording: what was recognized in it and what was not.

Spans and log events are counted by the convention that recognizes them; of the others, their scopes, names and attribute keys
are listed, never a value. Runs are counted by the data they carry, tools by whether they change anything.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.config import Settings
from otel_reliability.conventions import TABLE
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Run, Tools
from otel_reliability.model.span import EVALUATION, LINK, RUN_KEY, Kind, RawLog, crossing
from otel_reliability.model.tools import ToolEffect, ToolRules, classified
from otel_reliability.report.missing import missing_of
from otel_reliability.report.proposal import MAX_GROUPS, OTHERS, Proposal, Unknown
from otel_reliability.report.terminal import INDENT, columns, dim, heading, missing_data
from otel_reliability.report.text import agent_name, clean, count, percent
from otel_reliability.sources.batch import Batch

MIN_ALIKE: Final = 3
"""Results of a tool that begin with one error word before it is shown."""

MAX_LINES: Final = 20
"""Lines of each table on a terminal; the JSON has all."""
CROSSING_WORDS: Final = {LINK: "the links", RUN_KEY: "the run_key"}


class Recognised(NamedTuple):
    """Spans of one scope that one convention read as one kind."""

    convention: str
    kind: str
    scope: str


class LogEvents(NamedTuple):
    """Log events of one name and scope, and the convention that reads them as one kind; None where none reads them."""

    name: str
    scope: str
    convention: str | None
    kind: str | None


class AgentTelemetry(NamedTuple):
    """The data that the runs of one agent carry: for how many runs each thing of `CARRIED` is known.

    `sessions` counts distinct conversation ids. Where each of several runs has one of its own, the instrumentation makes them
    up (`invented_sessions`).
    """

    key: AgentKey
    runs: Mapping[str, int]
    sessions: int

    @property
    def invented_sessions(self) -> bool:
        """True if every run has a conversation id of its own."""
        return self.runs["with_session"] >= 3 and self.sessions == self.runs["with_session"]


CARRIED: Final[Mapping[str, Callable[[Run], bool]]] = {
    "runs": lambda run: not run.nested,
    "nested": lambda run: run.nested,
    "implicit": lambda run: run.implicit,
    "incomplete": lambda run: run.incomplete,
    "observed": lambda run: run.tools is Tools.OBSERVED,
    "from_messages": lambda run: run.tools is Tools.MESSAGES,
    "unobservable": lambda run: run.tools is Tools.UNOBSERVABLE,
    "calls": lambda run: bool(run.tool_calls),
    "arguments": lambda run: bool(run.tool_calls) and run.arguments_known,
    "tokens": lambda run: run.input_tokens is not None,
    "pressure": lambda run: run.token_pressure is not None,
    "outcomes": lambda run: run.success is not None,
    "tasks": lambda run: run.task_id is not None,
    "with_session": lambda run: run.session_id is not None and not run.nested,
}
"""The data that a run may carry, by name."""


class ToolClass(NamedTuple):
    """A tool that was called, and whether its calls count as effects."""

    name: str
    calls: int
    rule: ToolEffect


class UncaughtErrors(NamedTuple):
    """Results of a tool that begin with an error word, of calls that count as successful; `pattern` would make them fail."""

    tool: str
    word: str
    results: int
    pattern: str


class Inspection:
    """Counts of a recording: `see` counts spans, `take` runs."""

    def __init__(self, settings: Settings) -> None:
        self._reader = Reader(settings, TABLE)
        tools = settings.tools
        self._rules = ToolRules(tuple(tools.helpers), tuple(tools.effects), tuple(tools.reads))
        self.spans = 0
        self._recognised: Counter[Recognised] = Counter()
        self._events: Counter[LogEvents] = Counter()
        self._runs: dict[AgentKey, Counter[str]] = {}
        self._sessions: dict[AgentKey, set[str]] = {}
        self._unknown = Proposal()
        self._tools: Counter[str] = Counter()
        self._first: dict[str, tuple[int, str, int]] = {}
        self.crossing: Counter[str] = Counter()
        """Spans that may belong to a run of another trace, by what: workers that each have some traces cannot join them."""

    def see(self, batch: Batch) -> None:
        """Count the spans and log events of a batch."""
        for log in batch.logs:
            self._see_event(log)
        if batch.evaluations:
            self._events[LogEvents(EVALUATION, "", "evaluations", Kind.EVALUATION.value)] += len(batch.evaluations)
        for span in batch.spans:
            self.spans += 1
            convention = self._reader.convention_of(span)
            if convention is None:
                self._unknown.add(span)
            else:
                found = self._reader.read(span)
                self._recognised[Recognised(convention, found.kind.value, span.scope)] += 1
                self.crossing.update(crossing(found))
            if convention is None and span.links:
                self.crossing.update(crossing(self._reader.read(span)))

    def _see_event(self, log: RawLog) -> None:
        read = self._reader.event_of(log)
        found = LogEvents(log.name, log.scope, None, None)
        if read is not None:
            convention, event = read
            kind = Kind.MODEL if event.conversation is None else event.kind
            found = LogEvents(log.name, log.scope, convention, kind.value)
        if found not in self._events and len(self._events) >= MAX_GROUPS:
            found = LogEvents(OTHERS, "", None, None)
        self._events[found] += 1

    def take(self, runs: Sequence[Run]) -> None:
        """Count these runs."""
        for run in runs:
            known = self._runs.setdefault(run.key, Counter(dict.fromkeys(CARRIED, 0)))
            known.update(name for name, holds in CARRIED.items() if holds(run))
            if run.session_id is not None and not run.nested:
                self._sessions.setdefault(run.key, set()).add(run.session_id)
            if not run.nested:
                for at, call in enumerate(run.tool_calls or ()):
                    self._tools[call.name] += 1
                    here = (run.start_ns, run.run_id, at)
                    self._first[call.name] = min(here, self._first.get(call.name, here))

    @property
    def recognised(self) -> list[tuple[Recognised, int]]:
        """Spans by convention, kind and scope, the most first. Kind `other`: known, and no step of a run."""
        return sorted(self._recognised.items(), key=lambda item: (-item[1], item[0]))

    @property
    def events(self) -> list[tuple[LogEvents, int]]:
        """Log events by name and scope: those that are read first, the most first."""
        return sorted(
            self._events.items(), key=lambda item: (item[0].kind is None, -item[1], item[0].scope, item[0].name)
        )

    @property
    def unknown(self) -> list[Unknown]:
        """The scopes no convention knows, those that look like agents' work first."""
        return self._unknown.scopes()

    @property
    def agents(self) -> list[AgentTelemetry]:
        """The data of each agent, the most runs first."""
        found = [AgentTelemetry(key, known, len(self._sessions.get(key, ()))) for key, known in self._runs.items()]
        return sorted(found, key=lambda known: (-known.runs["runs"], known.key))

    @property
    def tools(self) -> list[ToolClass]:
        """The tools that were called, the most called first, of equals the one that was called in the earliest run."""
        ordered = sorted(self._tools.items(), key=lambda item: (-item[1], self._first[item[0]]))
        return [ToolClass(name, number, classified(name, self._rules)) for name, number in ordered]

    @property
    def mapping(self) -> list[dict[str, Any]]:
        """Rules of `mapping.spans` for the scopes that look like agents' work."""
        return self._unknown.rules(found.scope for found in self.unknown if found.suspected)

    @property
    def uncaught_errors(self) -> list[UncaughtErrors]:
        """Tools of which at least `MIN_ALIKE` results begin alike with an error word, though no rule makes the calls fail."""
        found = self._reader.hasher.uncaught_errors
        return [
            UncaughtErrors(tool, word, number, _pattern(word))
            for (tool, word), number in sorted(found.items(), key=lambda item: (-item[1], item[0]))
            if number >= MIN_ALIKE
        ]


def as_json(inspection: Inspection) -> dict[str, Any]:
    """The inspection as plain values, for programs."""
    return {
        "spans": inspection.spans,
        "crossing": dict(inspection.crossing),
        "recognised": [{**found._asdict(), "spans": number} for found, number in inspection.recognised],
        "events": [{**found._asdict(), "events": number} for found, number in inspection.events],
        "unknown": [
            {**found._asdict(), "names": dict(found.names), "keys": dict(found.keys)} for found in inspection.unknown
        ],
        "agents": [
            {
                "key": known.key._asdict(),
                **known.runs,
                "sessions": known.sessions,
                "invented_sessions": known.invented_sessions,
            }
            for known in inspection.agents
        ],
        "tools": [
            {"name": tool.name, "calls": tool.calls, "effect": tool.rule.effect, "why": tool.rule.why}
            for tool in inspection.tools
        ],
        "mapping": {"spans": inspection.mapping},
        "uncaught_errors": [found._asdict() for found in inspection.uncaught_errors],
    }


def _pattern(word: str) -> str:
    """Return the pattern of `tools.soft_errors` for results that begin with a word, or have a key."""
    return f"{word}(?!\\s*(null|false))" if word.startswith('"') else f"(?i)^\\W*\\w*{word}"


# --- Terminal ---------------------------------------------------------------------------------------------------------


def render(inspection: Inspection, rows: Sequence[tuple[str, Sequence[Row]]], console: Console) -> None:
    """Print what was found. `rows`: each agent's name and the rows of its window."""
    for part in _page(inspection, rows):
        console.print(part)
        console.print()


def _page(inspection: Inspection, rows: Sequence[tuple[str, Sequence[Row]]]) -> Iterator[RenderableType]:
    yield _spans(inspection)
    if inspection.events:
        yield _events(inspection.events)
    if inspection.unknown:
        yield _unknown(inspection.unknown)
    if rules := inspection.mapping:
        yield _mapping(rules)
    yield _runs(inspection.agents)
    if inspection.tools:
        yield _tools(inspection)
    if found := inspection.uncaught_errors:
        yield _uncaught(found)
    yield _missing(rows)


def _spans(inspection: Inspection) -> RenderableType:
    table = columns("Spans recognized, by convention", "as", "scope", "spans", numbers=1)
    for found, number in inspection.recognised[:MAX_LINES]:
        table.add_row(found.convention, found.kind, clean(found.scope), f"{number:,}")
    known = sum(number for _, number in inspection.recognised)
    total = dim(f"{known:,} of {count(inspection.spans, 'span')} recognized; `other` is known, and no step of a run.")
    return Group(table, *_more(len(inspection.recognised)), total, *_crossing(inspection))


def _events(found: Sequence[tuple[LogEvents, int]]) -> RenderableType:
    table = columns("Log events, by name", "scope", "read by", "as", "events", numbers=1)
    for one, number in found[:MAX_LINES]:
        read_as = Text(one.kind) if one.kind is not None else dim("not read")
        table.add_row(clean(one.name), clean(one.scope), one.convention or "", read_as, f"{number:,}")
    read = sum(number for one, number in found if one.kind is not None)
    return Group(table, *_more(len(found)), dim(f"{read:,} of {count(sum(n for _, n in found), 'event')} read."))


def _crossing(inspection: Inspection) -> Iterator[RenderableType]:
    """Yield what one process joins across traces, and workers on Kafka do not."""
    if inspection.crossing:
        known = " and ".join(
            f"{CROSSING_WORDS[what]} of {count(number, 'span')}" for what, number in inspection.crossing.items()
        )
        yield Text(
            f"⚠ Runs that cross traces, by {known}: workers on Kafka do not join them (docs/guides/scale.md).", "yellow"
        )


def _unknown(unknown: Sequence[Unknown]) -> RenderableType:
    table = columns("Not recognized, by scope", "spans", numbers=1)
    for found in unknown[:MAX_LINES]:
        mark = " ← looks like agents' work" if found.suspected else ""
        table.add_row(Text.assemble(clean(found.scope), (mark, "yellow")), f"{found.spans:,}")
    offers = [Padding(_offer(found), INDENT) for found in unknown[:3] if found.suspected]
    closing = dim("A new convention takes one file: docs/contributing/add-a-convention.md.")
    return Group(table, *_more(len(unknown)), *offers, *([closing] if offers else []))


def _offer(found: Unknown) -> RenderableType:
    """Return the names of the spans of an unknown convention, and the keys of its attributes."""
    names = ", ".join(f"{clean(name, 40)} ×{number:,}" for name, number in found.names)
    keys = ", ".join(f"{clean(key, 60)} ×{number:,}" for key, number in found.keys)
    return Group(Text(clean(found.scope), "bold"), dim(f"spans: {names}"), dim(f"attributes: {keys or 'none'}"))


def _mapping(rules: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return rules for unknown spans as lines of a settings file, ready to paste."""
    return Group(
        heading("A mapping for these spans, by their names and keys"),
        dim("Correct what is wrong, put it into a settings file, and read the recording again with --config:"),
        Padding(Text("\n".join(settings_lines(rules)), "cyan"), INDENT),
    )


def settings_lines(rules: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield `mapping.spans` as YAML."""
    yield from ("mapping:", "  spans:")
    for rule in rules:
        for number, (field, value) in enumerate(rule.items()):
            yield f"    {' ' if number else '-'} {field}: {json.dumps(value)}"


def _uncaught(found: Sequence[UncaughtErrors]) -> RenderableType:
    """Return the tools whose results look like errors that nothing catches, and the option that does."""
    lines = [
        Text(
            f"⚠ {clean(one.tool)}: {count(one.results, 'result')} of successful calls with {one.word!r} at the start.",
            "yellow",
        )
        for one in found[:MAX_LINES]
    ]
    patterns = list(dict.fromkeys(one.pattern for one in found))
    option = shlex.quote(f"tools.soft_errors={json.dumps(patterns)}")
    return Group(
        heading("Results that look like errors"),
        *lines,
        dim("If they are, make these calls failed ones:"),
        Padding(Text(f"--set {option}", "cyan"), INDENT),
    )


def _runs(agents: Sequence[AgentTelemetry]) -> RenderableType:
    if not agents:
        return Group(
            heading("Runs"),
            Text("No run was found: no span is an agent invocation, and there is no tool call without one."),
        )
    table = columns("Runs, by agent", "runs", "nested", "calls seen", "outcome", "tokens", "task", "session", numbers=7)
    for known in agents[:MAX_LINES]:
        table.add_row(agent_name(known.key), *_shares(known))
    return Group(
        table, *_more(len(agents)), *(Text(f"⚠ {note}", "yellow") for known in agents for note in _notes(known))
    )


def _shares(known: AgentTelemetry) -> Iterator[str]:
    runs = known.runs
    yield from (f"{runs['runs']:,}", f"{runs['nested']:,}")
    of = runs["runs"] + runs["nested"]
    for number in (runs["observed"] + runs["from_messages"], runs["outcomes"], runs["tokens"], runs["tasks"]):
        yield percent(number / of)
    yield percent(runs["with_session"] / runs["runs"]) if runs["runs"] else "–"


def _notes(known: AgentTelemetry) -> Iterator[str]:
    """Yield what limits the data of an agent's runs."""
    name, runs = agent_name(known.key), known.runs
    unknown = runs["calls"] - runs["arguments"]
    notes = (
        (runs["from_messages"], "the calls of {} were read from model messages, without their failures."),
        (runs["unobservable"], "the tools of {} cannot be observed; they do not count for paths."),
        (runs["incomplete"], "{} without a root span; they do not count for paths."),
        (unknown, "arguments of calls are unknown in {}; retries are matched by tool alone."),
    )
    if known.invented_sessions:
        yield f"{name}: every run has a conversation id of its own; the instrumentation makes them up, so no session is real."
    yield from (f"{name}: {note.format(count(number, 'run'))}" for number, note in notes if number)


def _tools(inspection: Inspection) -> RenderableType:
    table = columns("Tools called", "the world", "because", "calls", numbers=1)
    for tool in inspection.tools[:MAX_LINES]:
        effect = Text("changes it", "bold") if tool.rule.effect else Text("only reads", "dim")
        table.add_row(clean(tool.name), effect, tool.rule.why, f"{tool.calls:,}")
    return Group(
        table, *_more(len(inspection.tools)), dim("To correct it, here or in a settings file:"), *_remedies(inspection)
    )


def _remedies(inspection: Inspection) -> Iterator[RenderableType]:
    """Yield the options that correct a classification, with a tool of the recording, ready to paste."""
    for effect, setting, means in ((True, "tools.reads", "only reads"), (False, "tools.effects", "changes it")):
        name = next((tool.name for tool in inspection.tools if tool.rule.effect is effect), None)
        if name is not None:
            line = shlex.quote(f"{setting}={json.dumps([clean(name)], ensure_ascii=False)}")
            yield Padding(Text.assemble((f"--set {line}", "cyan"), (f"  {clean(name)} {means}", "dim")), INDENT)


def _missing(rows: Sequence[tuple[str, Sequence[Row]]]) -> RenderableType:
    if not rows:
        return Group(heading("Missing data"), Text("Every number: without a run there is nothing to compute."))
    gaps = list(missing_data([(name, missing_of(of_agent)) for name, of_agent in rows]))
    if not gaps:
        return Group(heading("Missing data"), Text("None: every number has the data it needs."))
    return Group(heading("Missing data, and how to add it"), *gaps)


def _more(number: int) -> list[RenderableType]:
    return [dim(f"{number - MAX_LINES:,} more; --format json has all.")] if number > MAX_LINES else []
