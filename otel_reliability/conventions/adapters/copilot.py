"""GitHub Copilot in VS Code and on the command line: its spans, and what its users did with an
answer. Documented, not captured.

Source: documentation of VS Code, "Monitor agent usage with OpenTelemetry", and of the CLI. Spans
follow the GenAI conventions; the totals on `invoke_agent` are those of the whole session;
compressions are events of the span that was active. The other log events repeat what spans report,
and name no conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.adapters import genai
from otel_reliability.conventions.base import (
    Answer,
    Convention,
    EventAnswer,
    SpanView,
    own_of_events,
)
from otel_reliability.model.span import (
    CompressionFacts,
    InvocationFacts,
    Kind,
    ModelFacts,
    RawEvent,
    RawLog,
)

CONVERSATION: Final = "gen_ai.conversation.id"
CHAT_SESSION: Final = "copilot_chat.chat_session_id"
FEEDBACK: Final = "user_feedback"
EDIT_FEEDBACK: Final = "edit_feedback"
EDIT_SURVIVAL: Final = "edit_survival"
"""Names of evaluations: none decides an outcome unless `outcome.evaluations` has it."""
COMPACTION: Final = "github.copilot.session.compaction_"
_LABELS: Final = {"accepted": "pass", "positive": "pass", "rejected": "fail", "negative": "fail"}


class Copilot(Convention):
    """Spans of the GenAI conventions in a scope of Copilot's."""

    name = "GitHub Copilot"
    scopes = ("copilot-chat", "github.copilot")
    event_scopes = scopes
    conversation = (CONVERSATION, CHAT_SESSION)
    plain = (*genai.GenAI.plain, *genai.GenAI.needs)
    content = genai.GenAI.content
    tool_content = genai.GenAI.tool_content
    tool_mark = genai.GenAI.tool_mark
    messages = genai.GenAI.messages
    needs = (genai.OPERATION,)

    def read(self, span: SpanView) -> Answer | None:
        operation = values.text(span.get(genai.OPERATION))
        if operation is None:
            return None
        answer = genai.by_operation(operation, span)
        facts = answer.facts
        if isinstance(facts, InvocationFacts):
            facts = replace(facts, tokens=None)
        if isinstance(facts, InvocationFacts | ModelFacts):
            facts = replace(facts, compressions=own_of_events(_compressions))
        return replace(answer, facts=facts)

    def read_event(self, log: RawLog) -> EventAnswer | None:
        """Read an evaluation by its user; of a run that the event, or its
        conversation, leads to.
        """
        given = log.attributes
        kind = log.name.removeprefix("copilot_chat.")
        request_id = values.identifier(given.get("request_id"))
        session = values.first(given, ("conversation_id", CONVERSATION), values.identifier)
        if kind == "user.feedback":
            evaluation = (FEEDBACK, None, _LABELS.get(str(given.get("rating"))))
        elif kind == "edit.feedback":
            evaluation = (EDIT_FEEDBACK, None, _LABELS.get(str(given.get("outcome"))))
        elif kind == "edit.survival" and values.truth(given.get("did_branch_change")) is not True:
            evaluation = (EDIT_SURVIVAL, values.number(given.get("survival_rate_no_revert")), None)
        else:
            return genai.details_event(log)
        if evaluation[1:] == (None, None) or (session is None and not any(log.trace_id)):
            return None
        return EventAnswer(
            kind=Kind.OTHER,
            conversation=session or request_id or kind,
            identity=(request_id,),
            evaluation=evaluation,
        )


def _compressions(events: Sequence[RawEvent]) -> tuple[CompressionFacts, ...]:
    return tuple(_in_order(sorted(events, key=attrgetter("time_ns"))))


def _in_order(events: Iterable[RawEvent]) -> Iterator[CompressionFacts]:
    start_ns = 0
    for event in events:
        if event.name == f"{COMPACTION}start":
            start_ns = event.time_ns
        elif event.name == f"{COMPACTION}complete":
            before, after, success = (
                event.attributes.get(f"github.copilot.{name}")
                for name in ("pre_tokens", "post_tokens", "success")
            )
            yield CompressionFacts(
                values.integer(before),
                values.integer(after),
                failed=values.truth(success) is False,
                start_ns=start_ns or event.time_ns,
                end_ns=event.time_ns,
            )
            start_ns = 0
