"""Which attributes of a span to keep, decided once per set of keys.

An instrumentation sets the same keys in the same order on every span of one kind. One lookup by
these keys finds the plan, and one call of `itemgetter` reads the values.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, TypeAlias

from otel_reliability.conventions.reader import Reader

MAX_PLANS: Final = 2_048
"""Sets of keys that are remembered. When there are more, all are forgotten and decided again."""

NAMES_AND_NUMBERS: Final = frozenset(
    {
        "gen_ai.operation.name",
        "gen_ai.system",
        "gen_ai.agent.name",
        "gen_ai.workflow.name",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.response.id",
        "gen_ai.response.finish_reasons",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.prompt_tokens",
        "gen_ai.usage.completion_tokens",
        "gen_ai.aggregated_usage.input_tokens",
        "gen_ai.aggregated_usage.output_tokens",
        "gen_ai.conversation.id",
        "session.id",
        "error.type",
        "agent_name",
        "openinference.span.kind",
        "tool.name",
        "llm.model_name",
        "llm.token_count.prompt",
        "llm.token_count.completion",
        "agent.name",
        "graph.node.id",
        "traceloop.span.kind",
        "traceloop.entity.name",
        "traceloop.workflow.name",
        "llm.request.type",
        "mcp.method.name",
    }
)
"""Keys whose values may be kept as they are. The values of all other keys may be text of prompts or
messages.
"""
NAMES_AND_NUMBERS_PREFIXES: Final = ("reliability.", "messaging.")
ARGUMENTS: Final = frozenset(
    {
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "tool_arguments",
        "tool_response",
        "gen_ai.tool.args",
        "gen_ai.tool.input",
        "gen_ai.tool.output",
        "ai.toolCall.args",
        "ai.toolCall.result",
        "tool_input",
    }
)
"""Keys that hold only a tool's arguments or result. This text may be held until the queue is
drained.
"""

Values: TypeAlias = tuple[Any, ...]
Attributes: TypeAlias = dict[str, Any]


class AttributePlan:
    """The attributes to keep of a span with certain keys.

    `keys` are all keys that a convention reads, `get` returns their values. `arguments` are those
    that may hold a tool's arguments, `messages` those that may hold text of prompts or messages;
    `texts` are both. (Slots, because a named tuple's fields take ten times as long to read.)
    """

    __slots__ = ("arguments", "get", "keys", "messages", "texts")

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys
        self.get = _getter(keys)
        self.arguments = tuple(key for key in keys if key in ARGUMENTS)
        self.messages = tuple(
            key
            for key in keys
            if key not in NAMES_AND_NUMBERS
            and key not in ARGUMENTS
            and not key.startswith(NAMES_AND_NUMBERS_PREFIXES)
        )
        self.texts = self.messages + self.arguments


class AttributePlans(dict[tuple[str, ...], AttributePlan]):
    """Plans by the keys of a span, in their order; a missing one is made."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._wanted = reader.wanted
        self._prefixes = reader.wanted_prefixes

    def __missing__(self, keys: tuple[str, ...]) -> AttributePlan:
        if len(self) >= MAX_PLANS:
            self.clear()
        wanted = tuple(key for key in keys if key in self._wanted or key.startswith(self._prefixes))
        plan = self[keys] = AttributePlan(wanted)
        return plan


def _getter(keys: tuple[str, ...]) -> Callable[[Attributes], Values]:
    """Return a reader of these keys' values. (`itemgetter` returns a tuple for two keys or more
    only.)
    """
    if len(keys) > 1:
        return itemgetter(*keys)
    return (lambda attributes: (attributes[keys[0]],)) if keys else (lambda _: ())
