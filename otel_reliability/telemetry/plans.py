"""Which attributes of a span to take, worked out once for each set of keys.

An instrumentation sets the same keys in the same order on span after span. So one look-up by those keys tells what to take, and
one call in C takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, TypeAlias

from otel_reliability.conventions.reader import Reader

MAX_PLANS: Final = 2_048
"""Sets of keys remembered; beyond, all are worked out anew."""

PLAIN: Final = frozenset(
    {
        "gen_ai.operation.name", "gen_ai.system", "gen_ai.agent.name", "gen_ai.workflow.name", "gen_ai.tool.name",
        "gen_ai.tool.call.id", "gen_ai.request.model", "gen_ai.response.model", "gen_ai.response.id",
        "gen_ai.response.finish_reasons", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
        "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.aggregated_usage.input_tokens",
        "gen_ai.aggregated_usage.output_tokens", "gen_ai.conversation.id", "session.id", "error.type", "agent_name",
        "openinference.span.kind", "tool.name", "llm.model_name", "llm.token_count.prompt", "llm.token_count.completion",
        "agent.name", "graph.node.id", "traceloop.span.kind", "traceloop.entity.name", "traceloop.workflow.name",
        "llm.request.type", "mcp.method.name",
    }
)  # fmt: skip
"""Keys of names and numbers: their values are kept as they are, unread."""
PLAIN_PREFIXES: Final = ("reliability.", "messaging.")
ARGUMENTS: Final = frozenset(
    {
        "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "tool_arguments", "tool_response", "gen_ai.tool.args",
        "gen_ai.tool.input", "gen_ai.tool.output", "ai.toolCall.args", "ai.toolCall.result", "tool_input",
    }
)  # fmt: skip
"""Keys of nothing but a tool's arguments or result: such text may be held until the queue is emptied."""

Values: TypeAlias = tuple[Any, ...]
Attributes: TypeAlias = dict[str, Any]


class Plan:
    """What to take of a span with certain keys.

    `keys` are all that is wanted, `get` their values. `arguments` are those that may be text of a tool's, `suspects` those
    that may be text of prompts or messages: whatever is not known to be plain. `texts` are both.

    Its fields are slots, which are asked for at every span: those of a named tuple take ten times as long.
    """

    __slots__ = ("arguments", "get", "keys", "suspects", "texts")

    def __init__(self, wanted: tuple[str, ...]) -> None:
        self.keys = wanted
        self.get = _getter(wanted)
        self.arguments = tuple(key for key in wanted if key in ARGUMENTS)
        self.suspects = tuple(
            key for key in wanted if key not in PLAIN and key not in ARGUMENTS and not key.startswith(PLAIN_PREFIXES)
        )
        self.texts = self.suspects + self.arguments


class Plans:
    """Plans by the keys of a span, in their order."""

    def __init__(self, reader: Reader) -> None:
        self._wanted, self._prefixes = reader.wanted, reader.wanted_prefixes
        self.known: dict[tuple[str, ...], Plan] = {}

    def make(self, keys: tuple[str, ...]) -> Plan:
        """The plan for keys not seen before."""
        if len(self.known) >= MAX_PLANS:
            self.known.clear()
        plan = self.known[keys] = Plan(tuple(filter(self._is_wanted, keys)))
        return plan

    def _is_wanted(self, key: str) -> bool:
        return key in self._wanted or key.startswith(self._prefixes)


def _getter(keys: tuple[str, ...]) -> Callable[[Attributes], Values]:
    """The values of these keys. `itemgetter` gives a tuple for two keys or more only."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return (lambda attributes: (attributes[keys[0]],)) if keys else _no_values


def _no_values(attributes: Attributes) -> Values:
    return ()
