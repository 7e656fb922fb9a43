"""An inspection of a recording: what was recognized in it and what was not.

Spans and log events are counted by the convention that recognizes them; of the others, their
scopes, names and attribute keys are listed, never a value. Runs are counted by the data they carry,
tools by whether they change anything.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from otel_reliability.config import Settings
from otel_reliability.conventions import TABLE
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.flaws import INVENTED_SESSIONS, UNKNOWN_SCOPE, flaws_of
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Run, Tools
from otel_reliability.model.span import EVALUATION, LINK, RUN_KEY, Kind, RawLog, crossing
from otel_reliability.model.tools import ToolRules, classified
from otel_reliability.report import sections
from otel_reliability.report.clocks import Clocks, ClockSkew
from otel_reliability.report.data_quality import are_invented, quality_of
from otel_reliability.report.missing import missing_of
from otel_reliability.report.near_keys import NearKey, NearKeys
from otel_reliability.report.proposal import MAX_GROUPS, OTHERS, Proposal, Unknown, settings_lines
from otel_reliability.report.sections import Cell, Section, dim
from otel_reliability.report.terminal import INDENT, drawn, heading, missing_data
from otel_reliability.report.text import ABSENT, agent_name, clean, count, listed, percent
from otel_reliability.report.view import MERGED, QualityFinding
from otel_reliability.sources.batch import Batch

K = TypeVar("K", bound=tuple[str, ...])

MIN_ALIKE: Final = 3
"""Results of a tool that begin with one error word before it is shown."""
MAX_LINES: Final = 20
"""Lines of each table on a terminal; the JSON has all."""
MAX_KEY: Final = 100
"""Characters of an attribute key that are shown."""
CROSSING_WORDS: Final = {LINK: "the links", RUN_KEY: "the run_key"}


class Recognised(NamedTuple):
    """Spans of one scope that one convention read as one kind. Kind `other`: known, and no step of
    a run.
    """

    convention: str
    kind: str
    scope: str
    spans: int


class LogEvents(NamedTuple):
    """Log events of one name and scope, and the convention that reads them as one kind; None where
    none reads them.
    """

    name: str
    scope: str
    convention: str | None
    kind: str | None
    events: int


@dataclass(frozen=True, slots=True)
class AgentTelemetry:
    """The data that the runs of one agent carry: for how many runs each thing of `CARRIED` is
    known.

    `sessions` counts distinct conversation ids. Where each of several runs has one of its own, the
    instrumentation may make them up (`invented_sessions`).
    """

    key: Mapping[str, Any]
    runs: Mapping[str, int] = field(metadata=MERGED)
    sessions: int
    invented_sessions: bool

    @property
    def name(self) -> str:
        return agent_name(AgentKey(**self.key))


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


@dataclass(frozen=True, slots=True)
class AgentQuality:
    """A flaw of the telemetry of one agent; `agent` empty: of spans that belong to no run."""

    agent: str
    finding: QualityFinding = field(metadata=MERGED)


class ToolClass(NamedTuple):
    """A tool that was called, whether its calls count as effects, and why."""

    name: str
    calls: int
    effect: bool
    why: str


class UncaughtErrors(NamedTuple):
    """Results of a tool that begin with an error word, of calls that count as successful; `pattern`
    would make them fail.
    """

    tool: str
    word: str
    results: int
    pattern: str


@dataclass(frozen=True, slots=True)
class InspectionView:
    """Result of an inspection; its serialisation is the JSON. Each list begins with what is most
    frequent.

    - `data_quality`: the flaws of the telemetry: by agent, then those of spans without a run.
    - `near_keys`: attributes that are nearly ours, and not read.
    - `crossing`: spans that may belong to a run of another trace, by what: workers that each have
      some traces cannot join them.
    - `clocks`: services whose clock differs from a caller's.
    - `events`: those that are read first. `unknown`: the scopes that look like agents' work first.
    - `tools`: of equals, the one first that was called in the earliest run.
    - `mapping`: rules of `mapping.spans` for the scopes that look like agents' work.
    - `uncaught_errors`: tools of which at least `MIN_ALIKE` results begin alike with an error word,
      though no rule makes the calls fail.
    """

    data_quality: Sequence[AgentQuality]
    near_keys: Sequence[NearKey]
    spans: int
    crossing: Mapping[str, int]
    clocks: Sequence[ClockSkew]
    recognised: Sequence[Recognised]
    events: Sequence[LogEvents]
    unknown: Sequence[Unknown]
    agents: Sequence[AgentTelemetry]
    tools: Sequence[ToolClass]
    mapping: Mapping[str, Sequence[Mapping[str, Any]]]
    uncaught_errors: Sequence[UncaughtErrors]


class Inspection:
    """Counts of a recording: `see` counts spans, `take` runs, and `found` returns the result."""

    def __init__(self, settings: Settings) -> None:
        self._reader = Reader(settings, TABLE)
        tools = settings.tools
        self._rules = ToolRules(tuple(tools.helpers), tuple(tools.effects), tuple(tools.reads))
        self._spans = 0
        self._recognised: Counter[tuple[str, str, str]] = Counter()
        self._events: Counter[tuple[str, str, str | None, str | None]] = Counter()
        self._runs: dict[AgentKey, Counter[str]] = {}
        self._sessions: dict[AgentKey, set[str]] = {}
        self._unknown = Proposal()
        self._tools: Counter[str] = Counter()
        self._first: dict[str, tuple[int, str, int]] = {}
        self._crossing: Counter[str] = Counter()
        self._clocks = Clocks()
        self._near_keys = NearKeys()
        self._flaws: dict[AgentKey, Counter[str]] = {}

    def see(self, batch: Batch) -> None:
        """Count the spans and log events of a batch."""
        for log in batch.logs:
            self._see_event(log)
        if batch.evaluations:
            self._events[EVALUATION, "", "evaluations", Kind.EVALUATION.value] += len(
                batch.evaluations
            )
        self._spans += len(batch.spans)
        self._clocks.see(batch.spans)
        for span in batch.spans:
            self._near_keys.see(span.attributes, span.resource.attributes)
            convention = self._reader.convention_of(span)
            if convention is None:
                self._unknown.add(span)
            if convention is not None or span.links:
                found = self._reader.read(span)
                self._crossing.update(crossing(found))
                if convention is not None:
                    self._recognised[convention, found.kind.value, span.scope] += 1

    def _see_event(self, log: RawLog) -> None:
        self._near_keys.see(log.attributes, log.resource.attributes)
        read = self._reader.event_of(log)
        found = (log.name, log.scope, None, None)
        if read is not None:
            convention, event = read
            kind = Kind.MODEL if event.conversation is None else event.kind
            found = (log.name, log.scope, convention, kind.value)
        if found not in self._events and len(self._events) >= MAX_GROUPS:
            found = (OTHERS, "", None, None)
        self._events[found] += 1

    def take(self, runs: Sequence[Run]) -> None:
        """Count these runs."""
        for run in runs:
            known = self._runs.setdefault(run.key, Counter(dict.fromkeys(CARRIED, 0)))
            known.update(name for name, holds in CARRIED.items() if holds(run))
            self._flaws.setdefault(run.key, Counter()).update(flaws_of(run))
            if not run.nested:
                if run.session_id is not None:
                    self._sessions.setdefault(run.key, set()).add(run.session_id)
                for at, call in enumerate(run.tool_calls or ()):
                    self._tools[call.name] += 1
                    here = (run.start_ns, run.run_id, at)
                    self._first[call.name] = min(here, self._first.get(call.name, here))

    def found(self, of_spans: Sequence[QualityFinding] = ()) -> InspectionView:
        """Return what was counted so far. `of_spans`: the flaws of spans without a run."""
        unknown = self._unknown.scopes()
        return InspectionView(
            data_quality=[*self._quality_of_agents(), *self._quality_of_spans(unknown, of_spans)],
            near_keys=self._near_keys.found(),
            spans=self._spans,
            crossing=dict(self._crossing),
            clocks=self._clocks.skews(),
            recognised=[Recognised(*key, number) for key, number in _ranked(self._recognised)],
            events=sorted(
                (LogEvents(*key, number) for key, number in self._events.items()),
                key=lambda one: (one.kind is None, -one.events, one.scope, one.name),
            ),
            unknown=unknown,
            agents=sorted(
                map(self._agent, self._runs),
                key=lambda known: (-known.runs["runs"], *known.key.values()),
            ),
            tools=[
                ToolClass(name, number, *classified(name, self._rules))
                for name, number in sorted(
                    self._tools.items(), key=lambda item: (-item[1], self._first[item[0]])
                )
            ],
            mapping={"spans": self._unknown.rules()},
            uncaught_errors=[
                UncaughtErrors(tool, word, number, _pattern(word))
                for (tool, word), number in _ranked(self._reader.hasher.uncaught_errors)
                if number >= MIN_ALIKE
            ],
        )

    def _agent(self, key: AgentKey) -> AgentTelemetry:
        runs = self._runs[key]
        sessions = len(self._sessions.get(key, ()))
        invented = are_invented(runs["with_session"], sessions)
        return AgentTelemetry(key._asdict(), runs, sessions, invented)

    def _quality_of_agents(self) -> Iterator[AgentQuality]:
        for key, flaws in sorted(self._flaws.items()):
            known = self._agent(key)
            runs = known.runs
            invented = runs["with_session"] if known.invented_sessions else 0
            counts = {**flaws, INVENTED_SESSIONS: invented}
            for one in quality_of(counts, runs["runs"] + runs["nested"]):
                yield AgentQuality(known.name, one)

    def _quality_of_spans(
        self, unknown: Sequence[Unknown], of_spans: Sequence[QualityFinding]
    ) -> Iterator[AgentQuality]:
        suspected = sum(one.spans for one in unknown if one.suspected)
        for one in (*of_spans, *quality_of({UNKNOWN_SCOPE: suspected}, self._spans)):
            yield AgentQuality("", one)


def _ranked(counts: Mapping[K, int]) -> list[tuple[K, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _pattern(word: str) -> str:
    """Return the pattern of `tools.soft_errors` for results that begin with a word, or
    have a key.
    """
    return f"{word}(?!\\s*(null|false))" if word.startswith('"') else f"(?i)^\\W*\\w*{word}"


# --- Terminal -------------------------------------------------------------------------------------


def render(
    found: InspectionView, rows: Sequence[tuple[str, Sequence[Row]]], console: Console
) -> None:
    """Print what was found. `rows`: each agent's name and the rows of its window."""
    for part in _page(found, rows):
        console.print(part)
        console.print()


def _page(
    found: InspectionView, rows: Sequence[tuple[str, Sequence[Row]]]
) -> Iterator[RenderableType]:
    yield _quality(found.data_quality)
    if found.near_keys:
        yield _near(found.near_keys)
    yield _spans(found)
    if found.events:
        yield _events(found.events)
    if found.unknown:
        yield _unknown(found.unknown)
    if rules := found.mapping["spans"]:
        yield Group(
            heading("A mapping for these spans, by their names and keys"),
            dim(
                "Correct what is wrong, put it into a settings file, and read the "
                "recording again with --config:"
            ),
            Padding(Text("\n".join(settings_lines(rules)), "cyan"), INDENT),
        )
    yield _runs(found.agents)
    if found.tools:
        yield _tools(found.tools)
    if found.uncaught_errors:
        yield _uncaught(found.uncaught_errors)
    yield _missing(rows)


def _table(
    titles: Sequence[str], align: str, rows: Sequence[Sequence[Cell]], notes: Sequence[Cell] = ()
) -> RenderableType:
    rest = len(rows) - MAX_LINES
    more = [f"{rest:,} more; --format json has all."] if rest > 0 else []
    return drawn(Section(titles, align, rows[:MAX_LINES], [*more, *notes]))


def _warning(text: str) -> Text:
    return Text(f"⚠ {text}", "yellow")


def _option(line: str) -> tuple[str, str]:
    return f"--set {shlex.quote(line)}", "cyan"


def _quality(found: Sequence[AgentQuality]) -> RenderableType:
    """Return the flaws of the telemetry: one line a finding, with the agents that have it."""
    agents: dict[str, list[AgentQuality]] = {}
    for each in found:
        agents.setdefault(each.finding.kind, []).append(each)
    merged = [
        replace(
            every[0].finding,
            count=sum(each.finding.count for each in every),
            of=sum(each.finding.of for each in every),
        )
        for every in agents.values()
    ]
    for section in sections.data_quality(merged):
        whose = [listed(filter(None, (one.agent for one in every)), 3) for every in agents.values()]
        rows = [(*row[:2], name, *row[2:]) for row, name in zip(section.rows, whose, strict=True)]
        titles = (*section.titles[:2], "agents", *section.titles[2:])
        return _table(titles, "lrlll", rows)
    return Group(heading("Data quality"), Text("No flaw was found in this telemetry."))


def _near(found: Sequence[NearKey]) -> RenderableType:
    rows = [
        (Text(clean(one.found, MAX_KEY), "yellow"), clean(one.meant, MAX_KEY), f"{one.times:,}")
        for one in found
    ]
    return _table(("Attributes that are not read", "perhaps meant", "spans, events"), "llr", rows)


def _spans(found: InspectionView) -> RenderableType:
    rows = [
        (one.convention, one.kind, clean(one.scope), f"{one.spans:,}") for one in found.recognised
    ]
    known = (
        f"{sum(one.spans for one in found.recognised):,} of {count(found.spans, 'span')} recognized"
    )
    notes: list[Cell] = [f"{known}; `other` is known, and no step of a run."]
    if found.crossing:
        crossing = " and ".join(
            f"{CROSSING_WORDS[what]} of {count(n, 'span')}" for what, n in found.crossing.items()
        )
        remedy = "workers on Kafka do not join them (docs/guides/scale.md)."
        notes.append(_warning(f"Runs that cross traces, by {crossing}: {remedy}"))
    notes += [_warning(_clock(one)) for one in found.clocks[:MAX_LINES]]
    return _table(("Spans recognized, by convention", "as", "scope", "spans"), "lllr", rows, notes)


def _clock(skew: ClockSkew) -> str:
    """Return the sentence about a clock that differs."""
    where = "ahead of" if skew.ahead_s > 0 else "behind"
    return (
        f"The clock of {clean(skew.service)} is about {abs(skew.ahead_s):,.3g} s {where} that of "
        f"{clean(skew.caller)} (± {skew.uncertainty_s:,.2g} s, {count(skew.calls, 'call')}): "
        "synchronize them (NTP)."
    )


def _events(found: Sequence[LogEvents]) -> RenderableType:
    rows = [
        (
            clean(one.name),
            clean(one.scope),
            one.convention or "",
            one.kind or dim("not read"),
            f"{one.events:,}",
        )
        for one in found
    ]
    read = sum(one.events for one in found if one.kind is not None)
    total = sum(one.events for one in found)
    notes = [f"{read:,} of {count(total, 'event')} read."]
    return _table(("Log events, by name", "scope", "read by", "as", "events"), "llllr", rows, notes)


def _unknown(unknown: Sequence[Unknown]) -> RenderableType:
    mark = " ← looks like agents' work"
    rows = [
        (
            Text.assemble(clean(found.scope), (mark if found.suspected else "", "yellow")),
            f"{found.spans:,}",
        )
        for found in unknown
    ]
    offers = [Padding(_offer(found), INDENT) for found in unknown[:3] if found.suspected]
    closing = dim("A new convention takes one file: docs/contributing/add-a-convention.md.")
    return Group(
        _table(("Not recognized, by scope", "spans"), "lr", rows),
        *offers,
        *([closing] if offers else []),
    )


def _offer(found: Unknown) -> RenderableType:
    names = ", ".join(f"{clean(name, 40)} ×{number:,}" for name, number in found.names.items())
    keys = ", ".join(f"{clean(key, 60)} ×{number:,}" for key, number in found.keys.items())
    return Group(
        Text(clean(found.scope), "bold"),
        dim(f"spans: {names}"),
        dim(f"attributes: {keys or 'none'}"),
    )


def _uncaught(found: Sequence[UncaughtErrors]) -> RenderableType:
    patterns = list(dict.fromkeys(one.pattern for one in found))
    return Group(
        heading("Results that look like errors"),
        *(
            _warning(
                f"{clean(one.tool)}: {count(one.results, 'result')} of successful calls "
                f"with {one.word!r} at the start."
            )
            for one in found[:MAX_LINES]
        ),
        dim("If they are, make these calls failed ones:"),
        Padding(Text(*_option(f"tools.soft_errors={json.dumps(patterns)}")), INDENT),
    )


def _runs(agents: Sequence[AgentTelemetry]) -> RenderableType:
    if not agents:
        text = (
            "No run was found: no span is an agent invocation, and there is no tool call "
            "without one."
        )
        return Group(heading("Runs"), Text(text))
    titles = (
        "Runs, by agent",
        "runs",
        "nested",
        "calls seen",
        "outcome",
        "tokens",
        "task",
        "session",
    )
    rows = [(known.name, *_shares(known.runs)) for known in agents]
    return _table(titles, "lrrrrrrr", rows)


def _shares(runs: Mapping[str, int]) -> Iterator[str]:
    yield from (f"{runs['runs']:,}", f"{runs['nested']:,}")
    for number in (
        runs["observed"] + runs["from_messages"],
        runs["outcomes"],
        runs["tokens"],
        runs["tasks"],
    ):
        yield percent(number / (runs["runs"] + runs["nested"]))
    yield percent(runs["with_session"] / runs["runs"]) if runs["runs"] else ABSENT


def _tools(tools: Sequence[ToolClass]) -> RenderableType:
    effects = {True: Text("changes it", "bold"), False: dim("only reads")}
    rows = [(clean(one.name), effects[one.effect], one.why, f"{one.calls:,}") for one in tools]
    notes: list[Cell] = ["To correct it, here or in a settings file:"]
    for effect, setting, means in (
        (True, "tools.reads", "only reads"),
        (False, "tools.effects", "changes it"),
    ):
        name = next((clean(tool.name) for tool in tools if tool.effect is effect), None)
        if name is not None:
            option = _option(f"{setting}={json.dumps([name], ensure_ascii=False)}")
            notes.append(Text.assemble("  ", option, (f"  {name} {means}", "dim")))
    return _table(("Tools called", "the world", "because", "calls"), "lllr", rows, notes)


def _missing(rows: Sequence[tuple[str, Sequence[Row]]]) -> RenderableType:
    if not rows:
        return Group(
            heading("Missing data"),
            Text("Every number: without a run there is nothing to compute."),
        )
    gaps = missing_data([(name, missing_of(of_agent)) for name, of_agent in rows])
    return gaps or Group(heading("Missing data"), Text("None: every number has the data it needs."))
