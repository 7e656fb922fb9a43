"""What was recognised in a recording and what was not: the first thing to look at on one's own traces.

Spans are counted by the convention that knows them; of those that nobody knows, it is told what they offer: their scopes,
names and attribute keys, never a value. Runs are counted by what they tell, tools by whether they change anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from otel_reliability.config import Settings
from otel_reliability.conventions import TABLE
from otel_reliability.conventions.reader import Reader
from otel_reliability.model.crossing import crossing
from otel_reliability.model.run import AgentKey, Run, Tools
from otel_reliability.model.span import RawSpan
from otel_reliability.model.tools import ToolRules, Verdict, verdict

MOST_SCOPES: Final = 1_000
MOST_NAMES: Final = 1_000
"""Distinct scopes, span names and keys that are counted one by one; the rest goes to `OTHERS`."""
MOST_SHOWN: Final = 8
OTHERS: Final = "(others)"

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
    """A scope whose spans no convention knows: how many, what they offer, and whether it looks like agents' work."""

    scope: str
    spans: int
    names: tuple[tuple[str, int], ...]
    keys: tuple[tuple[str, int], ...]
    suspected: bool


class Told(NamedTuple):
    """What the runs of one agent tell: of how many runs each thing is known.

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
        """Whether every run stands in a conversation of its own."""
        return self.with_session >= 3 and self.sessions == self.with_session


class ToolVerdict(NamedTuple):
    """A tool that was called, and whether its calls count as effects."""

    name: str
    calls: int
    verdict: Verdict


class Inspection:
    """Counts what a recording holds. `see` is told of every span, `take` of every run."""

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
            told = self._runs.setdefault(run.key, Counter())
            told.update(_told(run))
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
    def agents(self) -> list[Told]:
        """What the runs of each agent tell, the most runs first."""
        found = [self._agent(key, told) for key, told in self._runs.items()]
        return sorted(found, key=lambda told: (-told.runs, told.key))

    @property
    def tools(self) -> list[ToolVerdict]:
        """The tools that were called, the most called first, of equals the one that was called in the earliest run."""
        ordered = sorted(self._tools.items(), key=lambda item: (-item[1], self._first[item[0]]))
        return [ToolVerdict(name, number, verdict(name, self._rules)) for name, number in ordered]

    def _offer(self, span: RawSpan) -> None:
        scope = _one(self._unknown, span.scope or "(no scope)", MOST_SCOPES)
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

    def _agent(self, key: AgentKey, told: Counter[str]) -> Told:
        sessions = len(self._sessions.get(key, ()))
        return Told(
            key, *(told[field] for field in Told._fields[1:-2]), sessions=sessions, with_session=told["session"]
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
            {**told._asdict(), "key": told.key._asdict(), "invented_sessions": told.invented_sessions}
            for told in inspection.agents
        ],
        "tools": [
            {"name": tool.name, "calls": tool.calls, "effect": tool.verdict.effect, "why": tool.verdict.why}
            for tool in inspection.tools
        ],
    }


def _told(run: Run) -> Iterable[str]:
    """The fields of `Told` that this run counts for."""
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


def _one(counter: Counter[str], name: str, most: int) -> str:
    return name if name in counter or len(counter) < most else OTHERS


def _most(counter: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(counter.most_common(MOST_SHOWN))
