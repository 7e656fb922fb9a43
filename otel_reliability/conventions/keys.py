"""Which attributes are read, and what their values may be.

A processor in a host's process copies a span on the thread of the user's agent, and reads it later.
What it may copy depends on what the values are, which each convention says of its keys:

- `plain`: names, ids and numbers. They are kept as they are; so are `needs` and `conversation`.
- `content`: the arguments or the result of a tool. Their text may be held for a while, up to a
  limit.
- `tool_content`: the same on the spans of tools, which have one of the words of `tool_mark` under
  its key (`tool_mark` is the key, then the words in lower case); messages on all other spans.
- `messages`, `prefixes`: may be text of prompts or answers, which is never held.

Of two conventions that say different things of a key the more careful one is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from otel_reliability.conventions import control_flow, evaluations, fingerprints, notes, owners
from otel_reliability.conventions.base import Convention

SESSIONS: Final = ("gen_ai.conversation.id", "session.id")
"""Name the session of a span, whatever its convention; the first one that is there."""
MESSAGING: Final = "messaging."
PLAIN_PREFIXES: Final = (notes.PREFIX, MESSAGING)
"""Prefixes of keys whose values are names and numbers, whatever the convention of their span."""


class ToolMark(NamedTuple):
    """Mark of the span of a tool, and the keys that hold arguments or a result there."""

    key: str
    words: frozenset[str]
    content: frozenset[str]

    def is_on(self, attributes: Mapping[str, Any]) -> bool:
        word = attributes.get(self.key)
        return isinstance(word, str) and word.lower() in self.words


class Keys:
    """The attributes that any of some conventions reads, and those that the user's settings name.

    `wanted` are the keys that are read exactly, `prefixes` the beginnings of the others. A key
    that only the user names may be text of messages. `requests` are those in which a request lies,
    the most specific first.
    """

    def __init__(self, table: Iterable[Convention], of_settings: Iterable[str]) -> None:
        table = tuple(table)
        careful = {
            *fingerprints.TEXTS,
            control_flow.STATUS_MESSAGE,
            *(key for one in table for key in (*one.messages, *one.tool_content)),
        }
        content = {key for one in table for key in one.content} - careful
        plain = {
            *SESSIONS,
            *notes.TASK_IDS,
            *fingerprints.VERSIONS,
            *fingerprints.REASONING,
            *fingerprints.PROMPT_NAMES,
            *fingerprints.PROMPT_VERSIONS,
            *control_flow.TYPES,
            *owners.KEYS,
            *(key for one in table for key in (*one.plain, *one.needs, *one.conversation)),
        }
        self.plain = frozenset(plain - careful - content)
        self.content = frozenset(content)
        self.wanted = frozenset(plain | content | careful).union(of_settings)
        self.prefixes = (
            *PLAIN_PREFIXES,
            *evaluations.PREFIXES,
            *fingerprints.PREFIXES,
            *sorted({prefix for one in table for prefix in one.prefixes}),
        )
        self.requests = tuple(dict.fromkeys(key for one in table for key in one.request))
        self.asks = tuple({prefix for one in table for prefix in one.asks})
        self.finish = frozenset(key for one in table for key in one.finish)
        self.tool_marks = tuple(
            ToolMark(one.tool_mark[0], frozenset(one.tool_mark[1:]), frozenset(one.tool_content))
            for one in table
            if one.tool_mark
        )

    def are_read(self, key: str) -> bool:
        """Return whether any rule reads the attribute of this key."""
        return key in self.wanted or key.startswith(self.prefixes)

    def are_plain(self, key: str) -> bool:
        """Return whether the value of a key that is read is a name or a number."""
        return key in self.plain or (key not in self.wanted and key.startswith(PLAIN_PREFIXES))
