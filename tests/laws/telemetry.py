"""Telemetry as real systems make it, generated: agents and their steps, with all that goes wrong on
the way.

A case is a set of spans (some told twice, differently) and of judgements that come apart from them.
`features` says which of the things that a case must be able to hold it does hold, so that a test
can count how often each is met.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.model.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_INTERNAL,
    KIND_PRODUCER,
    KIND_SERVER,
    STATUS_ERROR,
    STATUS_UNSET,
    Evaluation,
    RawSpan,
    SpanRef,
)
from otel_reliability.testing import at, span

T = TypeVar("T")

AGENTS: Final = ("support", "billing", "planner")
REQUESTS: Final = ("cancel my order please", "please cancel order 7", "how is the weather today")
TOOLS: Final = ("search", "book", "refund")
COPILOT: Final = "github.copilot"
COMPRESSED: Final = ("github.copilot.session.compaction_complete", {"github.copilot.pre_tokens": 9})
OPENAI_AGENTS: Final = "openinference.instrumentation.openai_agents"
WINDOW: Final = 3
"""Runs of the windows that the laws look at: a few runs are more than a window."""


class Case(NamedTuple):
    """Spans, each once; `versions` are others told under the id of one of them; and judgements."""

    spans: tuple[RawSpan, ...]
    versions: tuple[RawSpan, ...]
    evaluations: tuple[Evaluation, ...]

    @property
    def everything(self) -> list[RawSpan]:
        return [*self.spans, *self.versions]


class Teller:
    """Tells one trace. Times are tenths of seconds, so that equal ones happen."""

    def __init__(self, draw: st.DrawFn, trace: int, numbers: Iterator[int], *, size: int) -> None:
        self.spans: list[RawSpan] = []
        self._draw = draw
        self._trace = trace
        self._numbers = numbers
        self._left = size
        self._time = draw(st.integers(0, 50))

    def maybe(self, percent: int) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 - percent

    def one_of(self, values: Sequence[T]) -> T:
        """One of them; simple ones first."""
        return self._draw(st.sampled_from(values))

    def up_to(self, most: int) -> int:
        return self._draw(st.integers(0, most))

    def next_number(self) -> int:
        """The number of a span that is told after those below it."""
        return next(self._numbers)

    def wait(self, most: int = 5) -> int:
        """Let some time pass, or none; the time it is now."""
        self._time += self.up_to(most)
        return self._time

    # --- Spans ------------------------------------------------------------------------------------

    def tell(self, number: int, parent: int | None, start: int, **facts: Any) -> int:
        """A span that ends now."""
        self._left -= 1
        end = facts.pop("end", self._time)
        failed = facts.pop("failed", False)
        facts.setdefault("remote", None if self.maybe(4) else False)
        made = span(
            number,
            parent,
            trace=self._trace,
            start=start / 10,
            end=end / 10,
            status=STATUS_ERROR if failed else STATUS_UNSET,
            **facts,
        )
        self.spans.append(made)
        return number

    def agent(self, parent: int | None, depth: int = 0, **facts: Any) -> int:
        number = self.next_number()
        start = self._time
        self.steps(number, depth)
        name = self.one_of((*AGENTS, None))
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            **({"gen_ai.agent.name": name} if name else {}),
        }
        attributes |= self.notes() if self.maybe(40) else {}
        self.wait(2)
        return self.tell(
            number, parent, start, attributes=attributes, failed=self.maybe(15), **facts
        )

    def notes(self) -> dict[str, Any]:
        """What users and instrumentations say of a run."""
        told: dict[str, Any] = {"gen_ai.conversation.id": f"c{self.up_to(2)}"}
        if self.maybe(70):
            told["reliability.task.id"] = self.up_to(1)
        else:
            told["input.value"] = self.one_of(REQUESTS)
        if self.maybe(30):
            told["reliability.run.success"] = self.maybe(50)
        if self.maybe(20):
            told["reliability.run.confidence"] = self.up_to(4) / 4
        if self.maybe(20):
            told["reliability.branch.route"] = self.one_of(("left", "right"))
        return told

    def steps(self, parent: int, depth: int) -> None:
        for _ in range(self.up_to(4)):
            if self._left > 0:
                self.wait()
                self.step(parent, depth)

    def step(self, parent: int, depth: int) -> None:
        """One step, or several that belong together."""
        kinds: list[Callable[[], object]] = [
            partial(self.tool, parent),
            partial(self.model, parent),
            partial(self.retries, parent),
            partial(self.parallel, parent),
            partial(self.handoff, parent),
            partial(self.model, parent, scope=COPILOT, events=[COMPRESSED]),
            partial(self.wrapped, parent, depth),
            partial(self.told_twice, parent),
            partial(self.agent, parent, depth + 1),
            partial(self.agent_tool, parent, depth + 1),
        ]
        self.one_of(kinds if depth < 3 else kinds[:6])()

    def agent_tool(self, parent: int, depth: int) -> None:
        """A tool that is an agent."""
        number = self.next_number()
        start = self.wait()
        self.agent(number, depth)
        self.tool(parent, number=number, start=start)

    def tool(self, parent: int | None, **facts: Any) -> int:
        number = facts.pop("number", None) or self.next_number()
        start = facts.pop("start", self._time)
        name = facts.pop("name", None) or self.one_of(TOOLS)
        arguments = facts.pop("arguments", None)
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        if arguments is None and self.maybe(75):
            arguments = self.one_of(('{"q": 1}', '{"q": 2}'))
        if arguments is not None:
            attributes["gen_ai.tool.call.arguments"] = arguments
        if "call_id" in facts:
            attributes["gen_ai.tool.call.id"] = facts.pop("call_id")
        if self.maybe(20):
            attributes["gen_ai.tool.call.result"] = self.one_of(("1", "2"))
        facts.setdefault("failed", self.maybe(20))
        if "end" not in facts:
            self.wait(3)
        return self.tell(number, parent, start, attributes=attributes, **facts)

    def retries(self, parent: int) -> None:
        """A call that fails, and is tried again, perhaps under the same call id."""
        name = self.one_of(TOOLS)
        arguments = self.one_of(('{"q": 1}', '{"q": 2}', None))
        shared = {"call_id": f"call-{self._trace}-{self.next_number()}"} if self.maybe(30) else {}
        for attempt in range(2 + self.up_to(2)):
            self.wait(1)
            self.tool(
                parent,
                name=name,
                arguments=arguments,
                failed=attempt == 0 or self.maybe(60),
                **shared,
            )

    def parallel(self, parent: int) -> None:
        """Calls issued together."""
        start = self._time
        for _ in range(2 + self.up_to(1)):
            begun = start + self.up_to(1)
            self.tool(parent, start=begun, end=begun + self.up_to(4))
        self.wait()

    def model(self, parent: int | None, **facts: Any) -> int:
        number = self.next_number()
        start = self._time
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "model-1",
            "gen_ai.response.id": f"response-{self._trace}-{number}",
        }
        if self.maybe(70):
            attributes |= {
                "gen_ai.usage.input_tokens": self.up_to(900),
                "gen_ai.usage.output_tokens": self.up_to(90),
            }
        if self.maybe(30):
            attributes["gen_ai.context.window_size"] = 1_000
        if self.maybe(30):
            asked = ("gen_ai.user.message", {"content": self.one_of(REQUESTS)})
            facts["events"] = [*facts.get("events", ()), asked]
        self.wait(4)
        return self.tell(
            number,
            parent,
            start,
            attributes=attributes,
            kind=KIND_CLIENT,
            failed=self.maybe(10),
            **facts,
        )

    def handoff(self, parent: int) -> None:
        """A hand-off, to somebody or to whoever comes next."""
        to = f"handoff to {self.one_of(AGENTS)}" if self.maybe(80) else "handoff"
        self.tell(
            self.next_number(),
            parent,
            self._time,
            name=to,
            scope=OPENAI_AGENTS,
            attributes={"openinference.span.kind": "TOOL"},
        )

    def wrapped(self, parent: int | None, depth: int) -> None:
        """Steps below a span that is no step: a web request, or a container."""
        number = self.next_number()
        start = self._time
        self.steps(number, depth + 1)
        attributes = self.one_of(({}, {"session.id": "s1"}, {"openinference.span.kind": "CHAIN"}))
        if parent is not None and self.maybe(20):
            return  # lost on its way here, so that what is below it hangs on nothing
        self.tell(
            number, parent, start, name="POST /", attributes=attributes, failed=self.maybe(10)
        )

    def told_twice(self, parent: int) -> None:
        """One call told by two instrumentations, one within the other."""
        number = self.next_number()
        start = self._time
        name = self.one_of(TOOLS)
        if self.maybe(50):
            self.tool(number, name=name, failed=self.maybe(50))
            self.tool(parent, number=number, start=start, name=name, failed=False)
        else:
            self.model(number)
            facts = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-1"}
            self.tell(number, parent, start, attributes=facts, kind=KIND_CLIENT)

    # --- Traces -----------------------------------------------------------------------------------

    def trace(self) -> None:
        """One or two pieces of work, however they came about."""
        kinds: list[Callable[[], object]] = [
            partial(self.agent, None),
            self.small,
            self.workflow,
            self.request,
            lambda: self.agent(self.next_number(), remote=True),
            self.orphan,
            partial(self.wrapped, None, 2),
            self.chain,
            self.hop,
        ]
        for _ in range(1 + self.up_to(1)):
            work = self.one_of(kinds)
            self.wait(3)
            work()

    def small(self) -> None:
        """An agent that hardly does anything: several of them are more than a window."""
        number = self.next_number()
        start = self._time
        if self.maybe(70):
            self.tool(number)
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENTS[0]}
        self.tell(number, None, start, attributes=attributes, failed=self.maybe(20))

    def workflow(self) -> None:
        """A container of agents."""
        number = self.next_number()
        start = self._time
        for _ in range(1 + self.up_to(1)):
            self.agent(number, 1)
        attributes = {"gen_ai.operation.name": "invoke_workflow"}
        if self.maybe(50):
            attributes["gen_ai.workflow.name"] = "crew"
        self.tell(number, None, start, attributes=attributes, failed=self.maybe(10))

    def request(self) -> None:
        """Agents below a web request, whose caller may be elsewhere."""
        number = self.next_number()
        start = self._time
        for _ in range(1 + self.up_to(1)):
            self.agent(number, 1)
        remote = self.maybe(50)
        attributes = {"reliability.run.reward": self.up_to(1)} if self.maybe(20) else {}
        self.tell(
            number,
            self.next_number() if remote else None,
            start,
            remote=remote,
            kind=KIND_SERVER,
            attributes=attributes,
        )

    def orphan(self) -> None:
        """Work whose agent was lost on its way here."""
        lost = self.next_number()
        if self.maybe(50):
            self.tool(lost)
        self.steps(lost, 2)

    def chain(self) -> None:
        """An untyped container at the top."""
        number = self.next_number()
        start = self._time
        self.steps(number, 1)
        kind = self.one_of((KIND_INTERNAL, KIND_SERVER))
        self.tell(number, None, start, attributes={"openinference.span.kind": "CHAIN"}, kind=kind)

    def hop(self) -> None:
        """A message is sent; who gets it is told in another trace, which only a link joins to this
        one.
        """
        number = self.next_number()
        start = self._time
        sent = self.tell(
            self.next_number(),
            number,
            start,
            kind=KIND_PRODUCER,
            attributes={"messaging.system": "queue"},
        )
        self.agent(number, 1)
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENTS[2]}
        self.tell(number, None, start, attributes=attributes)
        numbers = (
            self._numbers if self.maybe(70) else itertools.count(number)
        )  # ids are ids within their trace
        there = Teller(self._draw, self._trace + 100, numbers, size=6)
        got = there.next_number()
        if there.maybe(70):
            there.agent(got, 2)
        else:
            there.steps(got, 2)
        there.tell(
            got,
            None,
            start,
            kind=KIND_CONSUMER,
            links=[(self._trace, sent)],
            attributes={"messaging.system": "queue"},
        )
        self.spans += there.spans


@st.composite
def cases(
    draw: st.DrawFn, *, first_trace: int = 1, traces: int = 5, size: int = 12, hostile: bool = False
) -> Case:
    """Telemetry of a few traces, some of which lost spans or were told differently; `hostile`: with
    parents at random.
    """
    numbers = itertools.count(1_000)
    told: list[RawSpan] = []
    for trace in range(first_trace, first_trace + draw(st.integers(1, traces))):
        teller = Teller(draw, trace, numbers, size=size)
        teller.trace()
        told += teller.spans
    if draw(st.integers(0, 4)) == 4 and len(told) > 2:
        lost = draw(st.sets(st.sampled_from(range(len(told))), min_size=1, max_size=2))
        told = [known for n, known in enumerate(told) if n not in lost]
    if hostile:
        told = [
            draw(_elsewhere(known, told)) if draw(st.integers(0, 9)) == 9 else known
            for known in told
        ]
    versions = [draw(_another(known)) for known in told if draw(st.integers(0, 24)) == 24]
    judged = tuple(draw(_evaluations(told)) for _ in range(draw(st.integers(0, 3)) if told else 0))
    return Case(tuple(told), tuple(versions), judged)


@st.composite
def _elsewhere(draw: st.DrawFn, known: RawSpan, told: Sequence[RawSpan]) -> RawSpan:
    """The span below any other of its trace, itself and those below it among them: parents may go
    in circles.
    """
    here = sorted({other.span_id for other in told if other.trace_id == known.trace_id})
    return replace(known, parent_id=draw(st.sampled_from(here)))


def _another(known: RawSpan) -> st.SearchStrategy[RawSpan]:
    """The same span as an earlier or later export may have told it."""
    return st.sampled_from(
        [
            replace(known, end_ns=known.end_ns + 50_000_000),
            replace(known, status=STATUS_ERROR - known.status),
            replace(known, attributes={}),
            replace(known, attributes={**known.attributes, "gen_ai.agent.name": "impostor"}),
            replace(known, end_ns=known.end_ns + 50_000_000, attributes={}),
        ]
    )


@st.composite
def _evaluations(draw: st.DrawFn, told: Sequence[RawSpan]) -> Evaluation:
    """A judgement about a span, a trace or a response."""
    about = draw(st.sampled_from(told))
    name = draw(st.sampled_from(("success", "helpful")))
    score = draw(st.sampled_from((0.0, 1.0)))
    time_ns = at(draw(st.integers(0, 2)))
    match draw(st.sampled_from(("span", "trace", "response"))):
        case "span":
            return Evaluation(name, score, None, time_ns, about.trace_id, about.span_id)
        case "trace":
            return Evaluation(name, score, None, time_ns, about.trace_id)
        case _:
            return Evaluation(
                name,
                score,
                None,
                time_ns,
                None,
                None,
                about.attributes.get("gen_ai.response.id", "none"),
            )


# --- What a case holds ----------------------------------------------------------------------------


def features(case: Case) -> Counter[str]:
    """How many there are in a case of each thing that a case must be able to hold."""
    here: dict[SpanRef, RawSpan] = {(known.trace_id, known.span_id): known for known in case.spans}
    found: Counter[str] = Counter()
    for known in case.spans:
        parent = None if known.parent_id is None else here.get((known.trace_id, known.parent_id))
        kind = kind_of(known)
        found["failure"] += known.status == STATUS_ERROR
        found["hand-off"] += kind == "handoff"
        found["hop"] += bool(known.links)
        found["compression"] += COMPRESSED[0] in {event.name for event in known.events}
        found["request"] += "input.value" in known.attributes
        found["request in an event"] += "gen_ai.user.message" in {
            event.name for event in known.events
        }
        found["unknown arguments"] += (
            kind == "tool" and "gen_ai.tool.call.arguments" not in known.attributes
        )
        if known.parent_id is not None and parent is None:
            found["remote orphan" if known.parent_remote else "local orphan"] += 1
        found["nesting"] += kind == "agent" and _has_agent_above(known, here)
    found["retry"] = _retries(case.spans)
    found["overlap"] = _overlaps(case.spans)
    found["another version"] = len(case.versions)
    agents = Counter(
        known.attributes.get("gen_ai.agent.name")
        for known in case.spans
        if kind_of(known) == "agent"
    )
    found["several agents"] = len(agents) > 1
    found["more than a window"] = max(agents.values(), default=0) > WINDOW
    found["judgement"] = len(case.evaluations)
    return found


def kind_of(known: RawSpan) -> str | None:
    """What a generated span is."""
    operation = known.attributes.get("gen_ai.operation.name")
    if operation is not None:
        return {"invoke_agent": "agent", "execute_tool": "tool", "chat": "model"}.get(
            operation, operation
        )
    return "handoff" if known.scope == OPENAI_AGENTS else None


def _has_agent_above(known: RawSpan, here: Mapping[SpanRef, RawSpan]) -> bool:
    above = known
    while above.parent_id is not None and (above.trace_id, above.parent_id) in here:
        above = here[above.trace_id, above.parent_id]
        if kind_of(above) == "agent":
            return True
    return False


def _siblings(spans: Sequence[RawSpan]) -> Iterator[list[RawSpan]]:
    """Tool calls side by side, in order."""
    found: dict[tuple[bytes, bytes | None], list[RawSpan]] = defaultdict(list)
    for known in sorted(spans, key=lambda known: (known.start_ns, known.end_ns)):
        if kind_of(known) == "tool":
            found[known.trace_id, known.parent_id].append(known)
    yield from found.values()


def _pairs(spans: Sequence[RawSpan]) -> Iterator[tuple[RawSpan, RawSpan]]:
    for calls in _siblings(spans):
        yield from itertools.combinations(calls, 2)


def _retries(spans: Sequence[RawSpan]) -> int:
    keys = ("gen_ai.tool.name", "gen_ai.tool.call.arguments")
    return sum(
        first.status == STATUS_ERROR
        and first.end_ns <= second.start_ns
        and all(first.attributes.get(key) == second.attributes.get(key) for key in keys)
        for first, second in _pairs(spans)
    )


def _overlaps(spans: Sequence[RawSpan]) -> int:
    return sum(second.start_ns < first.end_ns for first, second in _pairs(spans))
