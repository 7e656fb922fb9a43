"""Conversations with coding agents: log events and spans of one prompt are put into one tree, each
call once.

Theory of operation
-------------------
A coding agent reports its work by *spans*, by *log events*, or by both, and what it reports of one
prompt is no tree: an event knows its conversation but often not its prompt, and spans may be traces
of their own. The rest of assembly knows trees only, so every span gets the parent that it lacks.

- A *conversation* is a trace id that stands for it (`model.span.trace_of`). Its events are spans of
  that trace. A span of another trace belongs to it by its link, or by that of a span above it.
- A *turn* is the work on one prompt. One span stands for it, and is the root of its run: the agent
  span where there is one, else the event of the prompt. A conversation that a tool call of another
  one started is one turn: `ORIGIN`, which lies below that call.
- A *lane* is a span, or a subagent, that several events name. They belong to one turn.
- *Twins* are an event and a span that report the same call.

`Conversations` finds the turns (`turns`). `_Placement` finds the turn of each event, and of spans
that no agent span encloses; there, each becomes a child of what stands for its turn. An event with
a twin becomes a child of that span instead (`twins`): a call inside the same call is one call.
`put_together` writes this into the spans.

Pure: a function of the set of spans, not of their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from otel_reliability.assembly.span_tree import REF, latest_versions
from otel_reliability.assembly.turns import Conversations, TurnRef, is_started
from otel_reliability.assembly.twins import (
    REPORTED_TWICE,
    CallReport,
    find_twins,
    with_common_names,
)
from otel_reliability.model.span import (
    BY_TIME,
    AgentSpan,
    InvocationFacts,
    Kind,
    SpanRef,
    TraceId,
    conversation_of,
    is_conversation,
)

_CALLS: Final = frozenset({Kind.TOOL, Kind.MODEL})


def put_together(spans: Sequence[AgentSpan]) -> list[AgentSpan]:
    """Return the spans with the parents that those of conversations have."""
    conversations = Conversations(latest_versions(spans, REF))
    placement = _Placement(conversations)
    twins = placement.twins()
    named = with_common_names(twins, conversations.by_ref)
    parents = {**placement.parents, **twins}
    have_work = set(parents.values())
    placed: list[AgentSpan] = []
    for ref, span in {**conversations.by_ref, **named}.items():
        if ref in parents:
            placed.append(_below(span, parents[ref]))
        elif span.kind is not Kind.AGENT:
            placed.append(span)
        elif is_conversation(span.trace_id):
            placed.append(_prompt(span, conversations, has_work=ref in have_work))
        elif _is_part_of_agent(span, conversations):
            placed.append(_connection(span))
        else:
            placed.append(span)
    return placed


class _Placement:
    """The turn of each call, event and compression (`turn_of`), and the parents that spans get to
    lie below what stands for it (`parents`).
    """

    def __init__(self, conversations: Conversations) -> None:
        self.turn_of: dict[SpanRef, TurnRef] = {}
        self.parents: dict[SpanRef, SpanRef] = {}
        self._conversations = conversations
        self._first_in_lane: dict[SpanRef, AgentSpan] = {}
        for event in conversations.events:
            if event.link is not None:
                self._first_in_lane.setdefault(event.link, event)
        self._place_spans()
        self._place_events()
        self._place_compressions()

    def twins(self) -> dict[SpanRef, SpanRef]:
        """Return the span of each event about a call that a span reports too."""
        events = [
            CallReport(event, self._turn_with_spans(event)) for event in self._conversations.events
        ]
        spans = [
            CallReport(span, self.turn_of.get(REF(span)))
            for span in self._conversations.spans
            if span.kind in REPORTED_TWICE and not is_conversation(span.trace_id)
        ]
        return find_twins(events, spans)

    def _place_spans(self) -> None:
        """Place the outermost span above each call that no agent span encloses, by its time."""
        for span in self._conversations.spans:
            if span.kind not in _CALLS or is_conversation(span.trace_id):
                continue
            above = self._conversations.ancestry(span)
            if above.turn is not None:
                self.turn_of[REF(span)] = above.turn
                continue
            top = above.top
            turn = self.parents.get(REF(top)) or self._conversations.turn_at(
                above.conversation, top.end_ns
            )
            if turn is not None:
                self._place(span, top, turn)

    def _place_events(self) -> None:
        for event in self._conversations.events:
            turn = None if event.kind is Kind.COMPRESSION else self._turn_of_event(event)
            if turn is not None:
                self._place(event, event, turn)

    def _place_compressions(self) -> None:
        """Place compressions where work goes on after them. They come last, as they need to know
        what work each turn has.
        """
        compressions = [span for span in self._conversations.spans if span.kind is Kind.COMPRESSION]
        work_ends = self._work_ends() if compressions else {}
        for span in compressions:
            if is_conversation(span.trace_id):
                top = span
                conversation: TraceId | None = span.trace_id
                current = self._turn_of_event(span)
            else:
                above = self._conversations.ancestry(span)
                if above.turn is not None:
                    self.turn_of[REF(span)] = above.turn
                    continue
                top = above.top
                conversation = above.conversation
                current = self._conversations.turn_at(conversation, span.end_ns)
            turn = self._turn_that_goes_on(current, conversation, span.end_ns, work_ends)
            if turn is not None:
                self._place(span, top, turn)

    def _place(self, span: AgentSpan, top: AgentSpan, turn: TurnRef) -> None:
        """Put a span into a turn, by the parent of the outermost span above it."""
        self.turn_of[REF(span)] = turn
        self.parents[REF(top)] = turn

    def _turn_of_event(self, event: AgentSpan) -> TurnRef | None:
        """By the span that it was written in; else by its prompt; else by its time. Events of one
        lane go by the first of them.
        """
        turn = self._conversations.turn_written_in(event)
        if turn is not None:
            return turn
        if event.link is not None:
            event = self._first_in_lane[event.link]
        if event.parent_id is None or event.parent_id == BY_TIME:
            return self._conversations.turn_at(event.trace_id, event.end_ns)
        conversation = self._conversations.get(event.trace_id)
        if conversation is None:
            return None
        return conversation.turn_of_prompt(event.parent_id, event.end_ns)

    def _turn_that_goes_on(
        self,
        current: TurnRef | None,
        conversation: TraceId | None,
        time_ns: int,
        work_ends: Mapping[TurnRef, int],
    ) -> TurnRef | None:
        """Return the current turn where its work goes on after a time, else the next one of its
        conversation with work, else the last one before with work.
        """
        known = self._conversations.get(conversation)
        if known is None:
            return current
        if current is not None and (is_started(current) or work_ends.get(current, 0) >= time_ns):
            return current
        return known.turn_after(time_ns, among=work_ends)

    def _work_ends(self) -> dict[TurnRef, int]:
        """Return when the last work of each turn that has any ended."""
        ends = {REF(agent): agent.end_ns for agent in self._conversations.agents()}
        for ref, turn in self.parents.items():
            ends[turn] = max(ends.get(turn, 0), self._conversations.by_ref[ref].end_ns)
        return ends

    def _turn_with_spans(self, event: AgentSpan) -> TurnRef | None:
        """Return the turn that the spans of an event's call lie in: that of the call that started
        its conversation, where one did.
        """
        turn = self.turn_of.get(REF(event))
        seen: set[TurnRef] = set()  # conversations may say that they started one another
        while turn is not None and is_started(turn) and turn not in seen:
            seen.add(turn)
            call = self._conversations.by_ref[turn].link
            turn = None if call is None else self.turn_of.get(call)
        return turn


def _prompt(event: AgentSpan, conversations: Conversations, *, has_work: bool) -> AgentSpan:
    """Return the event of a prompt: the root of a run only if it stands for a turn with work."""
    turn = conversations.turn_of_prompt(event)
    if turn != REF(event):
        return _below(_connection(event), turn)
    if not has_work:
        return replace(_connection(event), link=None)
    # More may follow until there is another prompt: as below a missing parent, the run stays open.
    parent_id = BY_TIME if conversations.is_last_prompt(event) else None
    return replace(event, parent_id=parent_id, parent_remote=False, link=None)


def _is_part_of_agent(span: AgentSpan, conversations: Conversations) -> bool:
    """Return whether an agent span of a conversation lies in one of the same name: its steps are
    those of that one.
    """
    if conversation_of(span) is None:
        return False
    turn = conversations.ancestry(span).turn
    return (
        turn is not None and turn != REF(span) and _name(conversations.by_ref[turn]) == _name(span)
    )


def _connection(span: AgentSpan) -> AgentSpan:
    """Return a span that only connects others."""
    return replace(span, kind=Kind.OTHER, facts=None)


def _below(span: AgentSpan, parent: SpanRef) -> AgentSpan:
    if parent[0] == span.trace_id:
        return replace(span, parent_id=parent[1], link=None)
    return replace(span, parent_id=None, link=parent)


def _name(span: AgentSpan) -> str | None:
    return span.facts.name if isinstance(span.facts, InvocationFacts) else None
