"""Rules for which tool calls change the world, by the tool's name and, of a shell, by the command.

Telemetry does not say which tools change something, but their names do: `get_order` reads,
`cancel_order` does not. Users who know better say so in one line (`tools.effects`, `tools.reads`).
Assembly sets `ToolCall.has_effect` by these rules, `inspect` shows the rule that applied.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.config import ToolSettings
from otel_reliability.model.run import ToolCall

Patterns: TypeAlias = tuple[str, ...]
Effect: TypeAlias = tuple[str, bytes | None]

HANDOFF_MARK: Final = "→"
"""Precedes the name of the agent in a path that has the work handed over to it."""
NO_EFFECTS: Final[frozenset[Effect]] = frozenset()
NO_RULE: Final = "no rule says that it only reads"

READING_FIRST: Final = frozenset(
    {"get", "list", "find", "search", "lookup", "look", "read", "fetch", "query", "calculate"}
    | {"think", "view", "show", "describe", "retrieve", "count", "is", "has"}
)
READING_ANYWHERE: Final = frozenset({"search", "lookup", "grep", "query"})
READING_COMMANDS: Final = frozenset(
    {"open", "goto", "scroll", "ls", "cd", "cat", "head", "tail", "grep", "pwd"}
)
"""Tools of coding agents, and commands of a shell, that only read. As a word of a longer name they
mean other things.
"""
SHELL_WORDS: Final = frozenset(
    {"bash", "shell", "sh", "zsh", "terminal", "powershell", "command", "cmd"}
)
"""Words of the names of tools that run the command that their arguments hold."""
EDITING: Final = frozenset({"edit", "patch", "replace", "write"})
"""Words of the names of tools that change a file."""
READS_ONLY: Final = b""
"""In place of the hash of an effect: the arguments show that the call only reads."""
MAX_COMMAND: Final = 4096
"""Characters of a command beyond which it is not checked: it has an effect."""

NEXT_COMMAND: Final = re.compile(r"&&|\|\||[;|&\n]")
"""Separators of the commands in a line of a shell."""
HARMLESS: Final = re.compile(r"[\d&]?>(?:&\d|\s*/dev/null\b)")
"""Redirections that write to no file."""

HANDING_OVER: Final = frozenset({"transfer", "handoff", "hand"})

_PART = re.compile(r"\.|/|__")
_WORD = re.compile(r"[^\W_]+")
_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WRITES = re.compile(r">|`|\$\(|<\(")


class ToolEffect(NamedTuple):
    """Effect or none of the calls of a tool, and the rule that decided."""

    effect: bool
    why: str


class ToolRules(NamedTuple):
    """The user's word on tools, as shell globs: `helpers` and `reads` have no effect, `effects`
    have one.
    """

    helpers: Patterns = ToolSettings().helpers
    effects: Patterns = ()
    reads: Patterns = ()


DEFAULT_RULES: Final = ToolRules()


def words(name: str) -> tuple[str, ...]:
    """The words of a tool's name: of its last part after `.`, `/` or `__`, split at `_`, `-`, space
    and case.

    >>> words("mcp__github__create_issue"), words("getUserDetails"), words("crm/HTTPGet-2")
    (('create', 'issue'), ('get', 'user', 'details'), ('http', 'get', '2'))
    """
    parts = [part for part in _PART.split(name) if part.strip("_- ")]
    last = parts[-1] if parts else name
    return tuple(word.lower() for word in _WORD.findall(_CASE.sub(" ", last)))


def is_reading(name: str) -> bool:
    """Return whether a name says that the tool only reads.

    >>> [
    ...     is_reading(name)
    ...     for name in ("get_order", "check_status", "check_in_guest", "web_search", "book_flight")
    ... ]
    [True, True, False, True, False]
    """
    parts = words(name)
    if not parts:
        return False
    if parts[0] == "check" and parts[1:2] not in (("in",), ("out",)):
        return True
    if parts[0] in READING_FIRST or not READING_ANYWHERE.isdisjoint(parts):
        return True
    return parts[0] == "scroll" or (len(parts) == 1 and parts[0] in READING_COMMANDS)


@functools.lru_cache(maxsize=4096)
def has_word(name: str, among: frozenset[str]) -> bool:
    """Return whether a word of a tool's name is among these (`SHELL_WORDS`, `EDITING`).

    >>> [
    ...     has_word(name, SHELL_WORDS)
    ...     for name in ("Bash", "run_shell_command", "local_shell", "seashell_catalogue")
    ... ]
    [True, True, True, False]
    >>> [
    ...     has_word(name, EDITING)
    ...     for name in ("Edit", "apply_patch", "str_replace_based_edit_tool", "book_flight")
    ... ]
    [True, True, True, False]
    """
    return not among.isdisjoint(words(name))


def only_reads(command: str) -> bool:
    """Return whether every part of a shell command begins with a command that only reads, and
    nothing is written to a file.

    >>> [
    ...     only_reads(each)
    ...     for each in ("cd src && ls -l", "cat a.py | head -5", "ls; rm -r x", "cat a > b", "")
    ... ]
    [True, True, False, False, False]
    """
    command = HARMLESS.sub("", command) if len(command) <= MAX_COMMAND else ">"
    if _WRITES.search(command):
        return False
    parts = [part.split(maxsplit=1) for part in NEXT_COMMAND.split(command) if part.strip()]
    return bool(parts) and all(part[0] in READING_COMMANDS for part in parts)


def is_handover(name: str) -> bool:
    """Return whether a name hands the work over, which changes nothing by itself.

    >>> (
    ...     is_handover("transfer_to_human_agents"),
    ...     is_handover("→billing"),
    ...     is_handover("handle_refund"),
    ... )
    (True, True, False)
    """
    return name.startswith(HANDOFF_MARK) or not HANDING_OVER.isdisjoint(words(name)[:1])


@functools.lru_cache(maxsize=4096)
def classified(name: str, rules: ToolRules = DEFAULT_RULES) -> ToolEffect:
    """Return whether a call of this tool changes something, by the first rule that applies.

    >>> classified("cancel_order")
    ToolEffect(effect=True, why='no rule says that it only reads')
    >>> classified("cancel_order", ToolRules(reads=("cancel_*",)))
    ToolEffect(effect=False, why='tools.reads: cancel_*')
    """
    for effect, setting, patterns in (
        (False, "tools.helpers", rules.helpers),
        (True, "tools.effects", rules.effects),
        (False, "tools.reads", rules.reads),
    ):
        for pattern in patterns:
            if fnmatchcase(name, pattern):
                return ToolEffect(effect, f"{setting}: {pattern}")
    if is_handover(name):
        return ToolEffect(False, "hands the work over")
    if is_reading(name):
        return ToolEffect(False, "its name says that it reads")
    return ToolEffect(True, NO_RULE)


def has_effect(name: str, arguments_effect: bytes | None, rules: ToolRules = DEFAULT_RULES) -> bool:
    """Return whether a successful call changes something; a command that only reads does, where
    `tools.effects` says so.

    >>> (
    ...     has_effect("bash", b"hash"),
    ...     has_effect("bash", READS_ONLY),
    ...     has_effect("bash", READS_ONLY, ToolRules(effects=("bash",))),
    ... )
    (True, False, True)
    """
    found = classified(name, rules)
    return found.effect and (arguments_effect != READS_ONLY or found.why != NO_RULE)


def effects_of(calls: Iterable[ToolCall]) -> frozenset[Effect]:
    """Return the changes that calls made: (tool, hash of the arguments without free text) of each
    that has an effect.
    """
    found = [(call.name, call.effect) for call in calls if call.has_effect]
    return frozenset(found) if found else NO_EFFECTS
