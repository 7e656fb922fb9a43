"""Which tool calls change the world: a judgement by the tool's name, and the effects of a run.

Two attempts at one task agree where they left the same changes behind, however they got there. Telemetry does not say
which tools change something, but their names do: `get_order` reads, `cancel_order` does not. Whoever knows better says so
in one line (`tools.effects`, `tools.reads`); `verdict` tells what was judged, and why.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.model.run import ToolCall

Patterns: TypeAlias = tuple[str, ...]
Effect: TypeAlias = tuple[str, bytes | None]

HANDOFF_MARK: Final = "→"

READING_FIRST: Final = frozenset(
    {"get", "list", "find", "search", "lookup", "look", "read", "fetch", "query", "calculate"}
    | {"think", "view", "show", "describe", "retrieve", "count", "is", "has"}
)
READING_ANYWHERE: Final = frozenset({"search", "lookup", "grep", "query"})
HANDING_OVER: Final = frozenset({"transfer", "handoff", "hand"})

_PART = re.compile(r"\.|/|__")
_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Verdict(NamedTuple):
    """Whether calls of a tool count as effects, and the rule that said so."""

    effect: bool
    why: str


class ToolRules(NamedTuple):
    """The user's word on tools, as shell globs: `helpers` and `reads` have no effect, `effects` have one."""

    helpers: Patterns = ("TodoWrite", "TodoRead", "ToolSearch", "Skill")
    effects: Patterns = ()
    reads: Patterns = ()


DEFAULT_RULES: Final = ToolRules()


def words(name: str) -> tuple[str, ...]:
    """The words of a tool's name: of its last part after `.`, `/` or `__`, split at `_`, `-`, space and case.

    >>> words("mcp__github__create_issue"), words("getUserDetails"), words("crm/HTTPGet-2")
    (('create', 'issue'), ('get', 'user', 'details'), ('http', 'get', '2'))
    """
    parts = [part for part in _PART.split(name) if part.strip("_- ")]
    last = parts[-1] if parts else name
    return tuple(word.lower() for word in _WORD.findall(_CASE.sub(" ", last)))


def is_reading(name: str) -> bool:
    """Whether a name says that the tool only looks.

    >>> [is_reading(name) for name in ("get_order", "check_status", "check_in_guest", "web_search", "book_flight")]
    [True, True, False, True, False]
    """
    parts = words(name)
    if not parts:
        return False
    if parts[0] == "check" and parts[1:2] not in (("in",), ("out",)):
        return True
    return parts[0] in READING_FIRST or not READING_ANYWHERE.isdisjoint(parts)


def is_handover(name: str) -> bool:
    """Whether a name hands the work to somebody else, which changes nothing by itself.

    >>> is_handover("transfer_to_human_agents"), is_handover("→billing"), is_handover("handle_refund")
    (True, True, False)
    """
    return name.startswith(HANDOFF_MARK) or not HANDING_OVER.isdisjoint(words(name)[:1])


@functools.lru_cache(maxsize=4096)
def verdict(name: str, rules: ToolRules = DEFAULT_RULES) -> Verdict:
    """Whether a call of this tool changes something, by the first rule that speaks.

    >>> verdict("cancel_order")
    Verdict(effect=True, why='no rule says that it only reads')
    >>> verdict("cancel_order", ToolRules(reads=("cancel_*",)))
    Verdict(effect=False, why='tools.reads: cancel_*')
    """
    for effect, setting, patterns in (
        (False, "tools.helpers", rules.helpers),
        (True, "tools.effects", rules.effects),
        (False, "tools.reads", rules.reads),
    ):
        for pattern in patterns:
            if fnmatchcase(name, pattern):
                return Verdict(effect, f"{setting}: {pattern}")
    if is_handover(name):
        return Verdict(False, "hands the work over")
    if is_reading(name):
        return Verdict(False, "its name says that it reads")
    return Verdict(True, "no rule says that it only reads")


def effects_of(calls: Iterable[ToolCall], rules: ToolRules = DEFAULT_RULES) -> frozenset[Effect]:
    """The changes that a run's calls made: (tool, hash of the arguments without free text) of those that did not fail."""
    return frozenset([(call.name, call.effect) for call in calls if call.ok and verdict(call.name, rules).effect])
