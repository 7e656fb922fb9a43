"""Fingerprints of an agent that spans carry, whatever their convention: hashes of its system prompt
and tools, and its version.

A prompt or a tool definition is hashed as it stands, with the key of `hashing`; nothing of it is
kept. A prompt that has a name or a version is known by these instead.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Any, Final

from msgspec.structs import replace

from otel_reliability.conventions import values
from otel_reliability.conventions.base import Answer, Own
from otel_reliability.conventions.hashing import Hasher
from otel_reliability.model.span import InvocationFacts, ModelFacts

VERSIONS: Final = (
    "gen_ai.agent.version",
    "traceloop.entity.version",
    "langfuse.version",
    "langfuse.release",
)
REASONING: Final = (
    "gen_ai.request.reasoning.level",
    "gen_ai.request.reasoning_effort",
    "gen_ai.openai.request.reasoning_effort",
)
"""The level of reasoning that is asked of a model (low, medium, high), and older names."""
PROMPTS: Final = ("gen_ai.system_instructions", "system_prompt")
FIRST_MESSAGES: Final = (
    ("gen_ai.prompt.0.role", "gen_ai.prompt.0.content"),
    ("llm.input_messages.0.message.role", "llm.input_messages.0.message.content"),
)
"""Keys of the role and the content of the first message, which is the system prompt where its role
says so.
"""
PROMPT_NAMES: Final = (
    "gen_ai.prompt.name",
    "langfuse.observation.prompt.name",
    "langfuse.prompt.name",
    "llm.prompt_template.name",
)
PROMPT_VERSIONS: Final = (
    "gen_ai.prompt.version",
    "langfuse.observation.prompt.version",
    "langfuse.prompt.version",
    "llm.prompt_template.version",
)
UNIQUE_ID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
"""Beginning of a "name" that is an id of its own for each input (Gemini CLI)."""
SYSTEM_ROLES: Final = frozenset({"system", "developer"})
TOOLS: Final = (
    "gen_ai.tool.definitions",
    "ai.prompt.tools",
    "mlflow.chat.tools",
    "llm.openai.tools",
    "haystack.agent.tools",
    "crewai.agent.tools",
    "gen_ai.agent.tools",
    "smolagents.tools_names",
)
PREFIXES: Final = ("llm.tools.", "llm.request.functions.")
"""Prefixes of the keys of tool definitions that are one attribute for each tool, or for each part
of it.
"""
TEXTS: Final = (*PROMPTS, *(key for pair in FIRST_MESSAGES for key in pair), *TOOLS)
KEYS: Final = frozenset({*VERSIONS, *REASONING, *PROMPT_NAMES, *PROMPT_VERSIONS, *TEXTS})


def completed(answer: Answer, keys: AbstractSet[str], hasher: Hasher) -> Answer:
    """Return the answer with what spans of these keys say of the agent's prompt,
    tools and version.
    """
    facts = answer.facts
    if not isinstance(facts, ModelFacts | InvocationFacts):
        return answer
    facts = replace(facts, prompt=_prompt(keys, hasher), tools=_tools(keys, hasher))
    if isinstance(facts, InvocationFacts):
        facts = replace(facts, version=_first(values.text, VERSIONS, keys))
    else:
        facts = replace(facts, reasoning=_first(values.text, REASONING, keys))
    return replace(answer, facts=facts)


def _prompt(keys: AbstractSet[str], hasher: Hasher) -> Any:
    """Return how the name and version of a prompt are read, else its hash."""
    names = tuple(key for key in PROMPT_NAMES if key in keys)
    versions = tuple(key for key in PROMPT_VERSIONS if key in keys)
    unnamed = _hashed_prompt(keys, hasher)
    if not names and not versions:
        return unnamed
    content = () if unnamed is None else unnamed.keys

    def read(*given: object) -> str | None:
        name = next(filter(None, map(_prompt_name, given[: len(names)])), None)
        of_version = given[len(names) : len(names) + len(versions)]
        version = next(filter(None, map(values.identifier, of_version)), None)
        found = " ".join(filter(None, (name, version)))
        if found:
            return found
        return None if unnamed is None else unnamed.of(given[-len(content) :], lambda one: one)

    return Own(read, (*names, *versions, *content), joined=True)


def _prompt_name(value: object) -> str | None:
    name = values.text(value)
    return None if name is None or UNIQUE_ID.match(name) else name


def _hashed_prompt(keys: AbstractSet[str], hasher: Hasher) -> Own | None:
    for pair in FIRST_MESSAGES:
        if keys >= set(pair):

            def hashed(role: object, content: object) -> str | None:
                return (
                    hasher.fingerprint(content)
                    if isinstance(role, str) and role in SYSTEM_ROLES
                    else None
                )

            return Own(hashed, pair, joined=True, once=True)
    return _first(hasher.fingerprint, PROMPTS, keys)


def _tools(keys: AbstractSet[str], hasher: Hasher) -> Any:
    parts = sorted(key for key in keys if key.startswith(PREFIXES))
    if not parts:
        return _first(hasher.fingerprint, TOOLS, keys)

    def hashed(*found: object) -> str | None:
        return hasher.fingerprint(found)

    return Own(hashed, tuple(parts), joined=True, once=True)


def _first(reader: Any, candidates: tuple[str, ...], keys: AbstractSet[str]) -> Own | None:
    return Own(reader, candidates, once=True) if not keys.isdisjoint(candidates) else None
