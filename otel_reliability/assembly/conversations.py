"""Conversations with coding agents: log events and spans of one prompt are put into one tree, each
call once.

A log event knows its conversation, but often not its prompt; a span of it may be a trace of its
own. This gives each the parent that it lacks: an event about a call that a span reports too becomes
the child of that span (a call inside the same call is one call), all else lies below its prompt:
the agent span of the prompt where there is one, else the event of the prompt. Pure: a function of
the set of spans, not of their order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from msgspec.structs import replace

from otel_reliability.assembly.span_tree import REF, latest_versions, parent_ref
from otel_reliability.model.span import (
    BY_TIME,
    ORIGIN,
    AgentSpan,
    InvocationFacts,
    Kind,
    ModelFacts,
    RejectionFacts,
    SpanId,
    SpanRef,
    Tokens,
    ToolFacts,
    TraceId,
    conversation_of,
    is_conversation,
)

MAX_GAP_NS: Final = 1_000_000_000
"""Nanoseconds between a call of a span and the same of an event, with the time at which it was
written.
"""
MAX_NEAR: Final = 16
"""Spans that began before an event, and as many that began after it, that are compared with it."""
_CALLS: Final = frozenset({Kind.TOOL, Kind.MODEL})
_TWINS: Final = _CALLS | {Kind.COMPRESSION}
"""Kinds that a span and an event may both report."""
_TIME: Final[Callable[[tuple[int, SpanRef]], int]] = itemgetter(0)
_start: Final[Callable[[AgentSpan], int]] = attrgetter("start_ns")


def put_together(spans: Sequence[AgentSpan]) -> list[AgentSpan]:
    """Return the spans with the parents that those of conversations have."""
    return _Conversations(latest_versions(spans, REF)).placed()


class _Turns:
    """The prompts of one conversation, in order.

    `roots`: agent spans; `prompts`: events. `turns`: when each prompt began, and the span that
    stands for it. `by_id` leads from the id of the event of a prompt to that span.
    """

    def __init__(self) -> None:
        self.roots: list[AgentSpan] = []
        self.prompts: list[AgentSpan] = []
        self.by_id: dict[SpanId, SpanRef] = {}
        self.turns: list[tuple[int, SpanRef]] = []

    def resolve(self) -> None:
        """Decide what stands for each prompt: the agent span that it lies in or that begins with
        it, else its event.
        """
        self.roots.sort(key=lambda root: (root.start_ns, root.span_id))
        self.turns = [(root.start_ns, REF(root)) for root in self.roots]
        for prompt in self.prompts:
            ref = self.by_id.get(prompt.span_id) or self.within(prompt.start_ns)
            if ref is None:
                after = self.roots[bisect_right(self.roots, prompt.start_ns, key=_start) :][:1]
                ref = REF(
                    after[0]
                    if after and after[0].start_ns - prompt.start_ns <= MAX_GAP_NS
                    else prompt
                )
            self.by_id[prompt.span_id] = ref
            self.turns.append((prompt.start_ns, ref))
        self.turns.sort()

    def within(self, time_ns: int) -> SpanRef | None:
        """Return the agent span that a time lies in."""
        at = bisect_right(self.roots, time_ns, key=_start) - 1
        return REF(self.roots[at]) if at >= 0 and time_ns <= self.roots[at].end_ns else None

    def at(self, time_ns: int) -> SpanRef | None:
        """Return what stands for the prompt that was current at a time."""
        at = bisect_right(self.turns, time_ns, key=_TIME) - 1
        return None if at < 0 else self.turns[at][1]

    def after(self, time_ns: int, having: Container[SpanRef]) -> SpanRef | None:
        """Return what stands for the first of these prompts after a time, else for the last one
        before it.
        """
        at = bisect_right(self.turns, time_ns, key=_TIME)
        return next(
            (ref for _, ref in (*self.turns[at:], *self.turns[:at][::-1]) if ref in having), None
        )


class _Conversations:
    """The conversations among some spans."""

    def __init__(self, spans: list[AgentSpan]) -> None:
        self._spans = sorted(
            spans, key=lambda span: (span.start_ns, span.end_ns, span.span_id, span.trace_id)
        )
        self._of = {REF(span): span for span in self._spans}
        self._turns: dict[TraceId, _Turns] = {}
        self._turn_of: dict[SpanRef, SpanRef | None] = {}
        self._events: list[AgentSpan] = []
        self._origins: set[TraceId] = set()
        self._find_turns()

    def placed(self) -> list[AgentSpan]:
        parents = self._parents()
        active = set(parents.values())
        named = self._named(parents)
        placed: list[AgentSpan] = []
        for span in self._spans:
            ref = REF(span)
            if ref in parents:
                placed.append(_below(named.get(ref, span), parents[ref]))
            elif span.kind is Kind.AGENT and is_conversation(span.trace_id):
                placed.append(self._prompt(span, has_work=ref in active))
            elif span.kind is Kind.AGENT and self._is_inner(span):
                placed.append(replace(span, kind=Kind.OTHER, facts=None))
            else:
                placed.append(named.get(ref, span))
        return placed

    # --- Prompts ----------------------------------------------------------------------------------

    def _find_turns(self) -> None:
        for span in self._spans:
            conversation = conversation_of(span)
            if conversation is None:
                continue
            if is_conversation(span.trace_id):
                if span.span_id == ORIGIN:
                    self._origins.add(span.trace_id)
                elif span.kind is Kind.AGENT:
                    self._turns.setdefault(conversation, _Turns()).prompts.append(span)
                else:
                    self._events.append(span)
            elif span.kind is Kind.AGENT and self._turn_above(span)[0] == REF(span):
                self._turns.setdefault(conversation, _Turns()).roots.append(span)
        self._know_prompts()
        for turns in self._turns.values():
            turns.resolve()

    def _know_prompts(self) -> None:
        """Note which agent span stands for a prompt where an event of it was written in one of its
        spans.
        """
        for event in [
            *(prompt for turns in self._turns.values() for prompt in turns.prompts),
            *self._events,
        ]:
            own = event.span_id if event.kind is Kind.AGENT else event.parent_id
            written_in = None if event.link is None else self._of.get(event.link)
            if (
                written_in is not None
                and own is not None
                and own != BY_TIME
                and event.trace_id in self._turns
            ):
                turn = self._turn_above(written_in)[0]
                if turn is not None:
                    self._turns[event.trace_id].by_id.setdefault(own, turn)

    def _prompt(self, span: AgentSpan, *, has_work: bool) -> AgentSpan:
        """The event of a prompt: the root of its run, unless an agent span, or the call that
        started it, is.
        """
        turns = self._turns[span.trace_id]
        stands_for = (
            (span.trace_id, ORIGIN) if span.trace_id in self._origins else turns.by_id[span.span_id]
        )
        if stands_for != REF(span):
            return _below(replace(span, kind=Kind.OTHER, facts=None), stands_for)
        if not has_work:
            return replace(span, kind=Kind.OTHER, facts=None, link=None)
        is_last = turns.turns[-1][1] == stands_for
        return replace(span, parent_id=BY_TIME if is_last else None, parent_remote=False, link=None)

    def _is_inner(self, span: AgentSpan) -> bool:
        """Return whether an agent span of a conversation lies in another one of its name: its steps
        are those of that one.
        """
        if conversation_of(span) is None:
            return False
        turn = self._turn_above(span)[0]
        return turn is not None and turn != REF(span) and _name(self._of[turn]) == _name(span)

    # --- Parents ----------------------------------------------------------------------------------

    def _parents(self) -> dict[SpanRef, SpanRef]:
        """The parents of events, and of spans of conversations that lie below no agent span."""
        found: dict[SpanRef, SpanRef] = {}
        for span in self._spans:
            if span.kind in _CALLS and not is_conversation(span.trace_id):
                turn, top, conversation = self._turn_above(span)
                if turn is None and REF(top) not in found:
                    placed = self._by_time(conversation, top.end_ns)
                    if placed is not None:
                        found[REF(top)] = placed
                self._turn_of[REF(span)] = turn or found.get(REF(top))
        lanes = {event.link: event for event in reversed(self._events) if event.link is not None}
        turn_of_event: dict[SpanRef, SpanRef] = {}
        for event in self._events:
            turn = None if event.kind is Kind.COMPRESSION else self._turn_of_event(event, lanes)
            if turn is not None:
                turn_of_event[REF(event)] = found[REF(event)] = turn
        self._add_compressions(found, turn_of_event, lanes)
        found.update(self._twins(turn_of_event))
        return found

    def _turn_above(self, span: AgentSpan) -> tuple[SpanRef | None, AgentSpan, TraceId | None]:
        """The topmost agent span above a span, the topmost span, and the conversation; each may be
        that of the span itself.
        """
        top = span
        turn = None
        conversation = None
        ref: SpanRef | None = REF(span)
        seen: set[SpanRef] = set()
        while ref is not None and ref in self._of and ref not in seen:
            seen.add(ref)
            top = self._of[ref]
            own = conversation_of(top)
            if own is not None:
                conversation = own
                if top.kind is Kind.AGENT:
                    turn = ref
            ref = parent_ref(top)
        return turn, top, conversation

    def _by_time(self, conversation: TraceId | None, time_ns: int) -> SpanRef | None:
        if conversation is None:
            return None
        if conversation in self._origins:
            return conversation, ORIGIN
        turns = self._turns.get(conversation)
        return None if turns is None else turns.at(time_ns)

    def _turn_of_event(self, event: AgentSpan, lanes: dict[SpanRef, AgentSpan]) -> SpanRef | None:
        """By the span that it was written in; else by its prompt; else by its time.

        `lanes`: the first event of each span, or subagent, that events were written in.
        """
        if event.link is not None:
            written_in = self._of.get(event.link)
            if written_in is not None:
                turn = self._turn_above(written_in)[0]
                if turn is not None:
                    return turn
            event = lanes[event.link]
        if event.parent_id is not None and event.parent_id != BY_TIME:
            turns = self._turns.get(event.trace_id)
            return (
                None
                if turns is None
                else turns.by_id.get(event.parent_id) or turns.within(event.end_ns)
            )
        return self._by_time(event.trace_id, event.end_ns)

    def _add_compressions(
        self,
        found: dict[SpanRef, SpanRef],
        turn_of_event: dict[SpanRef, SpanRef],
        lanes: dict[SpanRef, AgentSpan],
    ) -> None:
        """A compression belongs to the prompt whose work goes on after it, else to the next one of
        its conversation with work, else to the last.
        """
        compressions = [span for span in self._spans if span.kind is Kind.COMPRESSION]
        if not compressions:
            return
        ends = {REF(root): root.end_ns for turns in self._turns.values() for root in turns.roots}
        for ref, turn in found.items():
            ends[turn] = max(ends.get(turn, 0), self._of[ref].end_ns)
        for span in compressions:
            turn, top, conversation = self._turn_above(span)
            if is_conversation(span.trace_id):
                turn = self._turn_of_event(span, lanes)
                top = span
            elif turn is not None:
                self._turn_of[REF(span)] = turn
                continue
            else:
                turn = self._by_time(conversation, span.end_ns)
            turns = None if conversation is None else self._turns.get(conversation)
            if turns is not None and (
                turn is None or (turn[1] != ORIGIN and ends.get(turn, 0) < span.end_ns)
            ):
                turn = turns.after(span.end_ns, ends)
            if turn is not None:
                found[REF(top)] = self._turn_of[REF(span)] = turn_of_event[REF(span)] = turn

    # --- One call in a span and an event ----------------------------------------------------------

    def _twins(self, turn_of_event: dict[SpanRef, SpanRef]) -> dict[SpanRef, SpanRef]:
        """For each event about a call that a span reports too, that span."""
        by_id: dict[str, SpanRef] = {}
        others: dict[tuple[SpanRef | None, Kind, str | None], list[AgentSpan]] = {}
        for span in self._spans:
            if span.kind in _TWINS and not is_conversation(span.trace_id):
                own_id = _id_of(span)
                if own_id is not None:
                    by_id.setdefault(own_id, REF(span))
                others.setdefault(
                    (self._turn_of.get(REF(span)), span.kind, _call_name(span)), []
                ).append(span)
        found: dict[SpanRef, SpanRef] = {}
        pairs: list[tuple[int, SpanRef, SpanRef]] = []
        for event in self._events:
            ref = REF(event)
            own_id = _id_of(event)
            if own_id is not None and own_id in by_id:
                found[ref] = by_id[own_id]
                continue
            turn = self._turn_of_call(turn_of_event.get(ref), turn_of_event)
            alike = others.get((turn, event.kind, _call_name(event)), [])
            at = bisect_right(alike, event.start_ns, key=_start)
            for span in alike[max(at - MAX_NEAR, 0) : at + MAX_NEAR]:
                distance = _distance(event, span)
                if distance is not None:
                    pairs.append((distance, ref, REF(span)))
        taken = set[SpanRef]()
        for _, ref, twin in sorted(pairs):
            if ref not in found and twin not in taken:
                found[ref] = twin
                taken.add(twin)
        return found

    def _turn_of_call(
        self, turn: SpanRef | None, turn_of_event: dict[SpanRef, SpanRef]
    ) -> SpanRef | None:
        """The prompt that the call belongs to which started a conversation; any other prompt
        itself.
        """
        seen = set[SpanRef]()
        while turn is not None and turn[1] == ORIGIN and turn not in seen:
            seen.add(turn)
            call = self._of[turn].link
            turn = None if call is None else turn_of_event.get(call)
        return turn

    def _named(self, parents: dict[SpanRef, SpanRef]) -> dict[SpanRef, AgentSpan]:
        """Calls that a span and an event name differently, under the longer name: the other leaves
        something out.
        """
        found: dict[SpanRef, AgentSpan] = {}
        for event in self._events:
            twin = self._of.get(parents.get(REF(event), (b"", b"")))
            if twin is None or is_conversation(twin.trace_id):
                continue
            one = _call_name(event)
            two = _call_name(twin)
            if one is None or two is None or one == two:
                continue
            name = max(one, two, key=lambda name: (len(name), name))
            for span in (event, twin):
                if isinstance(span.facts, ToolFacts):
                    calls = (replace(span.facts.calls[0], name=name),)
                    found[REF(span)] = replace(span, facts=replace(span.facts, calls=calls))
        return found


def _below(span: AgentSpan, parent: SpanRef) -> AgentSpan:
    if parent[0] == span.trace_id:
        return replace(span, parent_id=parent[1], link=None)
    return replace(span, parent_id=None, link=parent)


def _name(span: AgentSpan) -> str | None:
    return span.facts.name if isinstance(span.facts, InvocationFacts) else None


def _id_of(span: AgentSpan) -> str | None:
    """The id of a tool call, or of the response of a model call."""
    facts = span.facts
    if isinstance(facts, ToolFacts):
        return facts.calls[0].call_id if len(facts.calls) == 1 else None
    if isinstance(facts, RejectionFacts):
        return facts.call_id
    return facts.response_id if isinstance(facts, ModelFacts) else None


def _call_name(span: AgentSpan) -> str | None:
    return (
        span.facts.calls[0].name
        if isinstance(span.facts, ToolFacts) and len(span.facts.calls) == 1
        else None
    )


def _distance(event: AgentSpan, span: AgentSpan) -> int | None:
    """Return how far an event and a span without a common id are apart in time; None where they are
    not the same call.
    """
    gap = max(span.start_ns - event.end_ns, event.start_ns - span.end_ns)
    if isinstance(event.facts, ModelFacts) and isinstance(span.facts, ModelFacts):
        one = event.facts.tokens
        two = span.facts.tokens
        if one != two and Tokens() not in (one, two):
            return None
    if gap > MAX_GAP_NS or (_id_of(event) is not None and _id_of(span) is not None):
        return None
    return abs(span.start_ns - event.start_ns) + abs(span.end_ns - event.end_ns)
