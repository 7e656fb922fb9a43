"""The turns of conversations with coding agents: the work on one prompt each.

See `conversations` for the words. Pure: a function of the set of spans, not of their order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

from msgspec import Struct

from otel_reliability.assembly.span_tree import ORDER, REF, parent_ref
from otel_reliability.model.span import (
    BY_TIME,
    ORIGIN,
    AgentSpan,
    Kind,
    SpanId,
    SpanRef,
    TraceId,
    conversation_of,
    is_conversation,
)

TurnRef: TypeAlias = SpanRef
"""The span that stands for a turn."""
MAX_PROMPT_LEAD_NS: Final = 1_000_000_000
"""Nanoseconds from the event of a prompt to the agent span that begins with it."""
_start: Final[Callable[[AgentSpan], int]] = attrgetter("start_ns")
_time: Final[Callable[[tuple[int, TurnRef]], int]] = itemgetter(0)


def is_started(turn: TurnRef) -> bool:
    """Return whether a turn is a whole conversation, which a tool call of another one started."""
    return turn[1] == ORIGIN


class Ancestry(Struct, frozen=True):
    """The spans above a span and what they belong to; each part may be that of the span itself.

    `top`: the outermost span. `turn`: the outermost agent span of a conversation. `conversation`:
    the outermost one that a span names.
    """

    top: AgentSpan
    turn: TurnRef | None
    conversation: TraceId | None


class Conversation:
    """One conversation: its agent spans and the events of its prompts, each by their start, and
    from `match` on its turns.

    `by_prompt`: what stands for a prompt, by the span id of its event.
    """

    def __init__(self) -> None:
        self.agents: list[AgentSpan] = []
        self.prompts: list[AgentSpan] = []
        self.by_prompt: dict[SpanId, TurnRef] = {}
        self._turns: list[tuple[int, TurnRef]] = []

    def match(self) -> None:
        """Decide what stands for each prompt: the agent span that is known to, that it lies in, or
        that begins with it; else its own event.
        """
        self._turns = [(agent.start_ns, REF(agent)) for agent in self.agents]
        for prompt in self.prompts:
            turn = (
                self.turn_of_prompt(prompt.span_id, prompt.start_ns)
                or self._agent_soon_after(prompt.start_ns)
                or REF(prompt)
            )
            self.by_prompt[prompt.span_id] = turn
            self._turns.append((prompt.start_ns, turn))
        self._turns.sort()

    def turn_of_prompt(self, prompt: SpanId, time_ns: int) -> TurnRef | None:
        """Return what stands for a prompt; where that is unknown, the agent span that a time of it
        lies in.
        """
        return self.by_prompt.get(prompt) or self._agent_at(time_ns)

    def turn_at(self, time_ns: int) -> TurnRef | None:
        """Return the turn that was current at a time."""
        at = bisect_right(self._turns, time_ns, key=_time) - 1
        return None if at < 0 else self._turns[at][1]

    def turn_after(self, time_ns: int, among: Container[TurnRef]) -> TurnRef | None:
        """Return the first of some turns after a time, else the last of them before it."""
        at = bisect_right(self._turns, time_ns, key=_time)
        nearest_first = (*self._turns[at:], *reversed(self._turns[:at]))
        return next((turn for _, turn in nearest_first if turn in among), None)

    def is_last(self, turn: TurnRef) -> bool:
        """Return whether no other turn began after this one."""
        return self._turns[-1][1] == turn

    def _agent_at(self, time_ns: int) -> TurnRef | None:
        at = bisect_right(self.agents, time_ns, key=_start) - 1
        return REF(self.agents[at]) if at >= 0 and time_ns <= self.agents[at].end_ns else None

    def _agent_soon_after(self, time_ns: int) -> TurnRef | None:
        at = bisect_right(self.agents, time_ns, key=_start)
        if at == len(self.agents) or self.agents[at].start_ns - time_ns > MAX_PROMPT_LEAD_NS:
            return None
        return REF(self.agents[at])


class Conversations:
    """The conversations among some spans, each span once.

    `spans`: all of them, by their start; `by_ref`: the same by their ids. `events`: the events of
    conversations that are no prompts.
    """

    def __init__(self, spans: Iterable[AgentSpan]) -> None:
        self.spans = sorted(spans, key=ORDER)
        self.by_ref = {REF(span): span for span in self.spans}
        self.events: list[AgentSpan] = []
        self._conversations: dict[TraceId, Conversation] = {}
        self._started: set[TraceId] = set()
        for span in self.spans:
            self._sort_in(span)
        self._name_turns()
        for conversation in self._conversations.values():
            conversation.match()

    def get(self, conversation: TraceId | None) -> Conversation | None:
        """Return a conversation; None where nothing of it is here that a turn begins with."""
        return None if conversation is None else self._conversations.get(conversation)

    def agents(self) -> Iterator[AgentSpan]:
        """Yield the agent spans that stand for turns."""
        for conversation in self._conversations.values():
            yield from conversation.agents

    def ancestry(self, span: AgentSpan) -> Ancestry:
        """Return what lies above a span."""
        top = span
        turn = None
        conversation = None
        ref: SpanRef | None = REF(span)
        seen: set[SpanRef] = set()  # parents may form a cycle
        while ref is not None and ref in self.by_ref and ref not in seen:
            seen.add(ref)
            top = self.by_ref[ref]
            named = conversation_of(top)
            if named is not None:
                conversation = named
                if top.kind is Kind.AGENT:
                    turn = ref
            ref = parent_ref(top)
        return Ancestry(top, turn, conversation)

    def turn_written_in(self, event: AgentSpan) -> TurnRef | None:
        """Return the turn of the span that an event was written in, if both are here."""
        span = None if event.link is None else self.by_ref.get(event.link)
        return None if span is None else self.ancestry(span).turn

    def turn_at(self, conversation: TraceId | None, time_ns: int) -> TurnRef | None:
        """Return the turn of a conversation that was current at a time."""
        if conversation is None:
            return None
        if conversation in self._started:
            return conversation, ORIGIN
        known = self._conversations.get(conversation)
        return None if known is None else known.turn_at(time_ns)

    def turn_of_prompt(self, event: AgentSpan) -> TurnRef:
        """Return what stands for a prompt, of which this is the event."""
        if event.trace_id in self._started:
            return event.trace_id, ORIGIN
        return self._conversations[event.trace_id].by_prompt[event.span_id]

    def is_last_prompt(self, event: AgentSpan) -> bool:
        """Return whether the event of a prompt stands for the last turn of its conversation."""
        return self._conversations[event.trace_id].is_last(REF(event))

    def _sort_in(self, span: AgentSpan) -> None:
        conversation = conversation_of(span)
        if conversation is None:
            return
        is_agent = span.kind is Kind.AGENT
        if not is_conversation(span.trace_id):
            if is_agent and self.ancestry(span).turn == REF(span):
                self._conversations.setdefault(conversation, Conversation()).agents.append(span)
        elif span.span_id == ORIGIN:
            self._started.add(conversation)
        elif is_agent:
            self._conversations.setdefault(conversation, Conversation()).prompts.append(span)
        else:
            self.events.append(span)

    def _name_turns(self) -> None:
        """Learn what stands for a prompt from the spans that its events were written in: that of
        the prompt itself before others.
        """
        prompts = (span for known in self._conversations.values() for span in known.prompts)
        for event in (*prompts, *self.events):
            prompt = event.span_id if event.kind is Kind.AGENT else event.parent_id
            known = self._conversations.get(event.trace_id)
            if known is None or prompt is None or prompt == BY_TIME:
                continue
            turn = self.turn_written_in(event)
            if turn is not None:
                known.by_prompt.setdefault(prompt, turn)
