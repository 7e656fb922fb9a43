"""An inspection of a recording: what was recognized in it and what was not.

Spans are counted by the convention that recognizes them; of the others, their scopes, names and attribute keys are listed, never
a value. Runs are counted by the data they carry, tools by whether they change anything.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.config import Settings
from otel_reliability.conventions import TABLE
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.crossing import LINK, RUN_KEY, crossing
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Run, Tools
from otel_reliability.model.span import RawSpan
from otel_reliability.model.tools import ToolRules, Verdict, verdict
from otel_reliability.report.missing import missing_of
from otel_reliability.report.proposal import Proposal
from otel_reliability.report.terminal import INDENT, columns, dim, heading, missing_data
from otel_reliability.report.text import agent_name, clean, count, percent

MOST_SCOPES: Final = 1_000
MOST_NAMES: Final = 1_000
"""Distinct scopes, span names and keys that are counted one by one; the rest goes to `OTHERS`."""
MOST_SHOWN: Final = 8
OTHERS: Final = "(others)"
NO_SCOPE: Final = "(no scope)"
MIN_ALIKE: Final = 3
"""Results of a tool that begin with one error word before it is shown."""

MAX_LINES: Final = 20
"""Lines of each table on a terminal; the JSON has all."""
CROSSING_WORDS: Final = {LINK: "the links", RUN_KEY: "the run_key"}

AGENT_WORDS: Final = (
    "agent",
    "tool",
    "llm",
    "gen_ai",
    "genai",
    "prompt",
    "completion",
    "token",
    "model",
    "chat",
    "chain",
)
"""Words in an attribute key or a span name by which an unknown dialect of agents is suspected."""


class Recognised(NamedTuple):
    """Spans of one scope that one convention read as one kind."""

    convention: str
    kind: str
    scope: str


class Unknown(NamedTuple):
    """A scope whose spans no convention recognizes: how many, their names and keys, and whether they look like agents' work."""

    scope: str
    spans: int
    names: tuple[tuple[str, int], ...]
    keys: tuple[tuple[str, int], ...]
    suspected: bool


class AgentTelemetry(NamedTuple):
    """The data that the runs of one agent carry: for how many runs each thing is known.

    `sessions` counts distinct conversation ids. Where each of several runs has one of its own, the instrumentation makes them
    up (`invented_sessions`).
    """

    key: AgentKey
    runs: int
    nested: int
    implicit: int
    incomplete: int
    observed: int
    from_messages: int
    unobservable: int
    calls: int
    arguments: int
    tokens: int
    pressure: int
    outcomes: int
    tasks: int
    sessions: int
    with_session: int

    @property
    def invented_sessions(self) -> bool:
        """True if every run has a conversation id of its own."""
        return self.with_session >= 3 and self.sessions == self.with_session


class ToolClass(NamedTuple):
    """A tool that was called, and whether its calls count as effects."""

    name: str
    calls: int
    verdict: Verdict


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
        self._unknown: Counter[str] = Counter()
        self._names: dict[str, Counter[str]] = {}
        self._keys: dict[str, Counter[str]] = {}
        self._runs: dict[AgentKey, Counter[str]] = {}
        self._sessions: dict[AgentKey, set[str]] = {}
        self._proposal = Proposal()
        self._tools: Counter[str] = Counter()
        self._first: dict[str, tuple[int, str, int]] = {}
        self.crossing: Counter[str] = Counter()
        """Spans that may belong to a run of another trace, by what: workers that each have some traces cannot join them."""

    def see(self, spans: Iterable[RawSpan]) -> None:
        """Count these spans."""
        for span in spans:
            self.spans += 1
            convention = self._reader.convention_of(span)
            if convention is None:
                self._offer(span)
            else:
                found = self._reader.read(span)
                self._recognised[Recognised(convention, found.kind.value, span.scope)] += 1
                self.crossing.update(crossing(found))
            if convention is None and span.links:
                self.crossing.update(crossing(self._reader.read(span)))

    def take(self, runs: Sequence[Run]) -> None:
        """Count these runs."""
        for run in runs:
            known = self._runs.setdefault(run.key, Counter())
            known.update(_known(run))
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
    def unknown(self) -> list[Unknown]:
        """The scopes no convention knows, those that look like agents' work first."""
        found = [self._unknown_scope(scope, number) for scope, number in self._unknown.items()]
        return sorted(found, key=lambda unknown: (not unknown.suspected, -unknown.spans, unknown.scope))

    @property
    def agents(self) -> list[AgentTelemetry]:
        """The data of each agent, the most runs first."""
        found = [self._agent(key, known) for key, known in self._runs.items()]
        return sorted(found, key=lambda known: (-known.runs, known.key))

    @property
    def tools(self) -> list[ToolClass]:
        """The tools that were called, the most called first, of equals the one that was called in the earliest run."""
        ordered = sorted(self._tools.items(), key=lambda item: (-item[1], self._first[item[0]]))
        return [ToolClass(name, number, verdict(name, self._rules)) for name, number in ordered]

    @property
    def mapping(self) -> list[dict[str, Any]]:
        """Rules of `mapping.spans` for the scopes that look like agents' work."""
        scopes = {found.scope for found in self.unknown if found.suspected}
        return self._proposal.rules({"" if scope == NO_SCOPE else scope for scope in scopes})

    @property
    def uncaught_errors(self) -> list[UncaughtErrors]:
        """Tools of which at least `MIN_ALIKE` results begin alike with an error word, though no rule makes the calls fail."""
        found = self._reader.hasher.uncaught_errors
        return [
            UncaughtErrors(tool, word, number, _pattern(word))
            for (tool, word), number in sorted(found.items(), key=lambda item: (-item[1], item[0]))
            if number >= MIN_ALIKE
        ]

    def _offer(self, span: RawSpan) -> None:
        self._proposal.add(span)
        scope = _one(self._unknown, span.scope or NO_SCOPE, MOST_SCOPES)
        self._unknown[scope] += 1
        names = self._names.setdefault(scope, Counter())
        names[_one(names, span.name, MOST_NAMES)] += 1
        keys = self._keys.setdefault(scope, Counter())
        for key in span.attributes:
            keys[_one(keys, key, MOST_NAMES)] += 1

    def _unknown_scope(self, scope: str, number: int) -> Unknown:
        names, keys = self._names[scope], self._keys[scope]
        suspected = any(word in text.lower() for word in AGENT_WORDS for text in (*names, *keys))
        return Unknown(scope, number, _most(names), _most(keys), suspected)

    def _agent(self, key: AgentKey, known: Counter[str]) -> AgentTelemetry:
        sessions = len(self._sessions.get(key, ()))
        return AgentTelemetry(
            key,
            *(known[field] for field in AgentTelemetry._fields[1:-2]),
            sessions=sessions,
            with_session=known["session"],
        )


def as_json(inspection: Inspection) -> dict[str, Any]:
    """The inspection as plain values, for programs."""
    return {
        "spans": inspection.spans,
        "crossing": dict(inspection.crossing),
        "recognised": [{**found._asdict(), "spans": number} for found, number in inspection.recognised],
        "unknown": [
            {**found._asdict(), "names": dict(found.names), "keys": dict(found.keys)} for found in inspection.unknown
        ],
        "agents": [
            {**known._asdict(), "key": known.key._asdict(), "invented_sessions": known.invented_sessions}
            for known in inspection.agents
        ],
        "tools": [
            {"name": tool.name, "calls": tool.calls, "effect": tool.verdict.effect, "why": tool.verdict.why}
            for tool in inspection.tools
        ],
        "mapping": {"spans": inspection.mapping},
        "uncaught_errors": [found._asdict() for found in inspection.uncaught_errors],
    }


def _known(run: Run) -> Iterable[str]:
    """The fields of `AgentTelemetry` that this run counts for."""
    marks = {
        "runs": not run.nested,
        "nested": run.nested,
        "implicit": run.implicit,
        "incomplete": run.incomplete,
        "observed": run.tools is Tools.OBSERVED,
        "from_messages": run.tools is Tools.MESSAGES,
        "unobservable": run.tools is Tools.UNOBSERVABLE,
        "calls": bool(run.tool_calls),
        "arguments": bool(run.tool_calls) and run.arguments_known,
        "tokens": run.input_tokens is not None,
        "pressure": run.token_pressure is not None,
        "outcomes": run.success is not None,
        "tasks": run.task_id is not None,
        "session": run.session_id is not None and not run.nested,
    }
    return (name for name, holds in marks.items() if holds)


def _pattern(word: str) -> str:
    """Return the pattern of `tools.soft_errors` for results that begin with a word, or have a key."""
    return f"{word}(?!\\s*(null|false))" if word.startswith('"') else f"(?i)^\\W*\\w*{word}"


def _one(counter: Counter[str], name: str, most: int) -> str:
    return name if name in counter or len(counter) < most else OTHERS


def _most(counter: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(counter.most_common(MOST_SHOWN))


# --- Terminal ---------------------------------------------------------------------------------------------------------


def render(inspection: Inspection, rows: Sequence[tuple[str, Sequence[Row]]], console: Console) -> None:
    """Print what was found. `rows`: each agent's name and the rows of its window."""
    for part in _page(inspection, rows):
        console.print(part)
        console.print()


def _page(inspection: Inspection, rows: Sequence[tuple[str, Sequence[Row]]]) -> Iterator[RenderableType]:
    yield _spans(inspection)
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


def _crossing(inspection: Inspection) -> Iterator[RenderableType]:
    """Yield what one process joins across traces, and workers on Kafka do not."""
    if inspection.crossing:
        known = " and ".join(
            f"{CROSSING_WORDS[what]} of {count(number, 'span')}" for what, number in inspection.crossing.items()
        )
        yield Text(
            f"⚠ Runs that cross traces, by {known}: workers on Kafka do not join them (docs/scale.md).", "yellow"
        )


def _unknown(unknown: Sequence[Unknown]) -> RenderableType:
    table = columns("Not recognized, by scope", "spans", numbers=1)
    for found in unknown[:MAX_LINES]:
        mark = " ← looks like agents' work" if found.suspected else ""
        table.add_row(Text.assemble(clean(found.scope), (mark, "yellow")), f"{found.spans:,}")
    offers = [Padding(_offer(found), INDENT) for found in unknown[:3] if found.suspected]
    closing = dim("A new convention takes one file: docs/recipes.md.")
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
    yield f"{known.runs:,}"
    yield f"{known.nested:,}"
    of = known.runs + known.nested
    for number in (known.observed + known.from_messages, known.outcomes, known.tokens, known.tasks):
        yield percent(number / of) if of else "–"
    yield percent(known.with_session / known.runs) if known.runs else "–"


def _notes(known: AgentTelemetry) -> Iterator[str]:
    """Yield what limits the data of an agent's runs."""
    name = agent_name(known.key)
    if known.invented_sessions:
        yield f"{name}: every run has a conversation id of its own; the instrumentation makes them up, so no session is real."
    if known.from_messages:
        yield f"{name}: the calls of {count(known.from_messages, 'run')} were read from model messages, without their failures."
    if known.unobservable:
        yield f"{name}: the tools of {count(known.unobservable, 'run')} cannot be observed; they do not count for paths."
    if known.incomplete:
        yield f"{name}: {count(known.incomplete, 'run')} without a root span; they do not count for paths."
    if known.arguments < known.calls:
        runs = count(known.calls - known.arguments, "run")
        yield f"{name}: arguments of calls are unknown in {runs}; retries are matched by tool alone."


def _tools(inspection: Inspection) -> RenderableType:
    table = columns("Tools called", "the world", "because", "calls", numbers=1)
    for tool in inspection.tools[:MAX_LINES]:
        effect = Text("changes it", "bold") if tool.verdict.effect else Text("only reads", "dim")
        table.add_row(clean(tool.name), effect, tool.verdict.why, f"{tool.calls:,}")
    return Group(
        table, *_more(len(inspection.tools)), dim("To correct it, here or in a settings file:"), *_remedies(inspection)
    )


def _remedies(inspection: Inspection) -> Iterator[RenderableType]:
    """Yield the options that correct a classification, with a tool of the recording, ready to paste."""
    for effect, setting, means in ((True, "tools.reads", "only reads"), (False, "tools.effects", "changes it")):
        name = next((tool.name for tool in inspection.tools if tool.verdict.effect is effect), None)
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
