"""Spans that no convention recognizes: their scopes, names and keys, and a proposal of
`mapping.spans` for them.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from otel_reliability.model.span import RawSpan

Mark: TypeAlias = tuple[str, str]
"""A key, and the word for a kind that is its value."""
Rule: TypeAlias = dict[str, Any]

KINDS: Final[Mapping[str, frozenset[str]]] = {
    "agent": frozenset(
        {"agent", "agent_run", "agent_call", "invoke_agent", "run_agent", "assistant", "bot"}
    ),
    "workflow": frozenset({"workflow", "pipeline", "graph", "crew"}),
    "tool": frozenset(
        {
            "tool",
            "tool_call",
            "tool_use",
            "tool_run",
            "execute_tool",
            "function",
            "function_call",
            "action",
        }
    ),
    "model": frozenset(
        {"model", "model_call", "llm", "llm_call", "chat", "completion", "generation", "inference"}
    ),
    "retrieval": frozenset({"retrieval", "retriever", "rag"}),
    "handoff": frozenset({"handoff", "hand_off", "transfer"}),
    "chain": frozenset({"chain", "step", "turn", "node"}),
}
"""Words for each kind. Of a value only these are kept: it is compared with them as a whole."""
KIND_OF: Final = {word: kind for kind, words in KINDS.items() for word in words}
LONGEST_WORD: Final = max(map(len, KIND_OF))
MAX_GROUPS: Final = 2_000
"""Groups of spans of one scope, name and words for kinds; the spans of more count as one group,
`OTHERS`.
"""
MAX_KEYS: Final = 1_000
"""Keys of a group that are counted."""
MAX_SHOWN: Final = 8
"""Names and keys of a scope that are shown."""
OTHERS: Final = "(others)"
NO_SCOPE: Final = "(no scope)"
AGENT_WORDS: Final = re.compile(
    "agent|tool|llm|gen_?ai|prompt|completion|token|model|chat|chain", re.IGNORECASE
)
"""Words in an attribute key or a span name by which unknown spans of agents are suspected."""
AGENT_KEYS: Final = re.compile("agent|tool|llm|gen_?ai|prompt|completion|tokens", re.IGNORECASE)
"""Words in keys that only spans of agents have."""
MAX_MARKS: Final = 4

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "agent": ("agent", "assistant", "bot"),
    "tool": ("tool", "function", "action"),
    "arguments": (
        "arguments",
        "args",
        "parameters",
        "params",
        "input",
        "inputs",
        "request",
        "query",
    ),
    "result": ("result", "results", "output", "outputs", "response", "return"),
    "model": ("model", "llm"),
    "session": ("session", "conversation", "thread", "chat"),
    "task": ("task", "ticket", "case", "issue", "job"),
    "outcome": ("outcome", "success", "succeeded", "resolved", "ok", "status"),
}
"""Words of the key of each field, the best first."""
TOKENS: Final = frozenset({"token", "tokens"})
TOKEN_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "input_tokens": frozenset({"input", "in", "prompt"}),
    "output_tokens": frozenset({"output", "out", "completion"}),
}
ID_WORDS: Final = frozenset({"id", "ids", "uuid", "guid", "arn", "sid"})
"""Words of keys that hold an identifier, which names no agent and no tool. (Models have ids.)"""
NAMED: Final = frozenset({"agent", "tool", "model"})
SERVER_KEYS: Final = re.compile(r"(http|url|rpc|db|net|server|faas|messaging)[._]")
"""Beginnings of keys of spans of web servers, clients and databases: their names and paths may
speak of models and agents.
"""
STANDARD_KEYS: Final = re.compile(
    SERVER_KEYS.pattern
    + r"|(network|client|user_agent|code|thread|process|host|os|container|k8s|cloud|telemetry"
    r"|exception|enduser|peer|tls|dns|device|browser|service|feature_flag)[._]"
)
"""Beginnings of keys that OpenTelemetry defines for spans of any kind: they hold no field."""
TIME_WORDS: Final = frozenset({"duration", "latency", "ms", "seconds"})
OTHER_WORDS: Final = (
    TOKENS
    | TIME_WORDS
    | {"type", "kind", "version", "count", "number", "index", "url", "description"}
)
"""Words of keys that hold none of these fields."""
FIELDS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "agent": ("agent", "session", "task", "outcome"),
    "workflow": ("agent", "session", "task", "outcome"),
    "chain": ("session",),
    "tool": ("tool", "arguments", "result", "outcome"),
    "model": ("model", "input_tokens", "output_tokens"),
    "retrieval": (),
    "handoff": ("agent",),
}

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_GLOB: Final = re.compile(r"[*?\[]")


class Group(NamedTuple):
    """Spans of one scope and name with the same words for kinds."""

    scope: str
    name: str
    marks: tuple[Mark, ...]


class Unknown(NamedTuple):
    """A scope whose spans no convention recognizes: how many, their names and keys, and whether
    they look like agents' work.
    """

    scope: str
    spans: int
    names: Mapping[str, int]
    keys: Mapping[str, int]
    suspected: bool


class Proposal:
    """Counts unknown spans, and proposes rules for them."""

    def __init__(self) -> None:
        self._keys: dict[Group, Counter[str]] = {}
        self._spans: Counter[Group] = Counter()

    def add(self, span: RawSpan) -> None:
        """Count a span: its name, its keys, and which of its values are words for kinds."""
        marks = [
            (key, word) for key in span.attributes if (word := _kind_word(span.attributes.get(key)))
        ]
        group = Group(span.scope or NO_SCOPE, span.name, tuple(sorted(marks)[:MAX_MARKS]))
        if group not in self._spans and len(self._spans) >= MAX_GROUPS:
            group = Group(OTHERS, OTHERS, ())
        self._spans[group] += 1
        keys = self._keys.setdefault(group, Counter())
        keys.update(key for key in span.attributes if key in keys or len(keys) < MAX_KEYS)

    def scopes(self) -> list[Unknown]:
        """Return the scopes, those that look like agents' work first."""
        names: dict[str, Counter[str]] = {}
        keys: dict[str, Counter[str]] = {}
        for group, number in self._spans.items():
            names.setdefault(group.scope, Counter())[group.name] += number
            keys.setdefault(group.scope, Counter()).update(self._keys[group])
        found = [
            Unknown(
                scope,
                spans=of_name.total(),
                names=dict(of_name.most_common(MAX_SHOWN)),
                keys=dict(keys[scope].most_common(MAX_SHOWN)),
                suspected=any(
                    _is_suspected(group.name, self._keys[group])
                    for group in self._spans
                    if group.scope == scope
                ),
            )
            for scope, of_name in names.items()
        ]
        return sorted(
            found, key=lambda unknown: (not unknown.suspected, -unknown.spans, unknown.scope)
        )

    def rules(self) -> list[Rule]:
        """Return rules for the spans that look like agents' work, those of runs first; none where
        no kind can be recognized.
        """
        found: dict[tuple[str, str, Mark | None], list[Group]] = {}
        for scope in sorted(unknown.scope for unknown in self.scopes() if unknown.suspected):
            groups = [
                group for group in self._spans if group.scope == scope and group.name != OTHERS
            ]
            key = self._kind_key(groups)
            for group in sorted(groups):
                mark = next((mark for mark in group.marks if mark[0] == key), None)
                kind = (
                    KIND_OF[_plain(mark[1])]
                    if mark
                    else _kind_by_words(group.name, self._keys[group])
                )
                if kind is not None:
                    found.setdefault((scope, kind, mark), []).append(group)
        order = list(KINDS)
        ranked = sorted(
            found.items(), key=lambda item: (order.index(item[0][1]), item[0][0], str(item[0][2]))
        )
        return [
            rule
            for (scope, kind, mark), groups in ranked
            for rule in self._rules(scope, kind, mark, groups)
        ]

    def _kind_key(self, groups: Iterable[Group]) -> str | None:
        """Return the key that separates most spans of a scope: by the number of kinds, then of
        spans.
        """
        kinds: dict[str, set[str]] = {}
        spans: Counter[str] = Counter()
        for group in groups:
            for key, word in group.marks:
                kinds.setdefault(key, set()).add(KIND_OF[_plain(word)])
                spans[key] += self._spans[group]
        return max(sorted(kinds), key=lambda key: (len(kinds[key]), spans[key]), default=None)

    def _rules(
        self, scope: str, kind: str, mark: Mark | None, groups: Sequence[Group]
    ) -> list[Rule]:
        keys = Counter[str]()
        for group in groups:
            keys.update(self._keys[group])
        if mark is not None:
            del keys[mark[0]]
        fields = _fields(kind, _own(keys))
        names = sorted({group.name for group in groups})
        if mark is not None:
            where: Rule = {} if scope == NO_SCOPE else {"scope": _literal(scope)}
            if len(names) == 1:
                where = {"name": _literal(names[0])}
            return [{"kind": kind, **where, "attributes": {mark[0]: mark[1]}, **fields}]
        return [{"kind": kind, "name": pattern, **fields} for pattern in _patterns(names)]


def settings_lines(rules: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield `mapping.spans` as YAML, ready to paste."""
    yield from ("mapping:", "  spans:")
    for rule in rules:
        for number, (key, value) in enumerate(rule.items()):
            yield f"    {' ' if number else '-'} {key}: {json.dumps(value)}"


def _kind_word(value: object) -> str | None:
    """Return a value that is a word for a kind, as it is written; None for any other."""
    if not isinstance(value, str) or len(value) > LONGEST_WORD:
        return None
    return value if _plain(value) in KIND_OF and _GLOB.search(value) is None else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "_")


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _kind_by_words(name: str, keys: Collection[str]) -> str | None:
    """Return the kind that the words of a name say, else those of its keys; None for a span of a
    server or a database, whatever its path says.
    """
    is_server = any(map(SERVER_KEYS.match, keys))
    keys = _own(keys)
    if is_server and not any(AGENT_KEYS.search(key) for key in keys):
        return None
    by_name = [
        KIND_OF[word] for word in _words(name) if word in KIND_OF and KIND_OF[word] != "chain"
    ]
    if by_name:
        return by_name[0]
    words = {word for key in keys for word in _words(key)}
    if not words.isdisjoint(TOKENS):
        return "model"
    return next(
        (kind for kind in ("tool", "model", "agent") if not words.isdisjoint(FIELDS[kind])), None
    )


def _own(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if STANDARD_KEYS.match(key) is None]


def _is_suspected(name: str, keys: Collection[str]) -> bool:
    """Return whether a span may be an agent's work by its keys, or by its name where it is no
    server's.
    """
    texts = _own(keys)
    if not any(map(SERVER_KEYS.match, keys)):
        texts.append(name)
    return any(map(AGENT_WORDS.search, texts))


def _fields(kind: str, keys: Sequence[str]) -> Rule:
    found: Rule = {}
    for field in FIELDS_OF[kind]:
        key = _token_key(TOKEN_FIELDS[field], keys) if field in TOKEN_FIELDS else _key(field, keys)
        if key is not None and key not in found.values():
            found[field] = key
    return found


def _token_key(sides: frozenset[str], keys: Sequence[str]) -> str | None:
    fitting = [
        key
        for key in keys
        if not TOKENS.isdisjoint(_words(key)) and not sides.isdisjoint(_words(key))
    ]
    return min(fitting, key=lambda key: (len(key), key), default=None)


def _key(field: str, keys: Sequence[str]) -> str | None:
    """Return the key with the best word for a field, of equals the shortest; no key that speaks of
    another field.
    """
    others = OTHER_WORDS
    if field in NAMED:
        others = others.union(FIELDS["arguments"], FIELDS["result"], FIELDS["outcome"])
    if field in {"agent", "tool"}:
        others = others.union(ID_WORDS)
    ranked = [
        (rank, len(key), key)
        for key in keys
        if others.isdisjoint(words := _words(key))
        for rank, word in enumerate(FIELDS[field])
        if word in words
    ]
    return min(ranked)[2] if ranked else None


def _patterns(names: Sequence[str]) -> list[str]:
    """Return patterns of names; names that only differ behind a common start, such as `tool:`, have
    one.
    """
    starts: dict[str, list[str]] = {}
    for name in names:
        start = re.match(r"[A-Za-z_]+[:./ ]", name)
        starts.setdefault(start[0] if start else name, []).append(name)
    return [
        _literal(start) + "*" if len(of) > 1 else _literal(of[0])
        for start, of in sorted(starts.items())
    ]


def _literal(text: str) -> str:
    return _GLOB.sub(lambda sign: f"[{sign[0]}]", text)


# --- In a running service -------------------------------------------------------------------------


SAMPLES: Final = 50
"""Spans of one scope and one set of keys that are examined."""
MAX_KINDS: Final = 2_000
"""Pairs of a scope and a set of keys of which samples are examined."""


class UnknownLines(NamedTuple):
    """The scopes whose spans look like agents' work, and the lines of a settings file that would
    recognize them.
    """

    scopes: list[Unknown]
    mapping: str


class UnknownSpans:
    """Examines the first spans of each kind that no convention recognizes. Receivers call `wants`,
    on any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._proposal = Proposal()
        self._samples: Counter[tuple[str, frozenset[str]]] = Counter()

    def wants(self, span: RawSpan) -> bool:
        """Examine a span, and return whether more like it are wanted."""
        kind = (span.scope, frozenset(span.attributes))
        with self._lock:
            if self._samples[kind] >= SAMPLES or (
                kind not in self._samples and len(self._samples) >= MAX_KINDS
            ):
                return False
            self._samples[kind] += 1
            self._proposal.add(span)
            return True

    def scopes(self) -> list[str]:
        """Return the names of the scopes that were found, those that look like agents' work
        first.
        """
        with self._lock:
            return [found.scope for found in self._proposal.scopes()]

    def lines(self) -> UnknownLines | None:
        """Return what was found; None where nothing looks like agents' work."""
        with self._lock:
            scopes = [found for found in self._proposal.scopes() if found.suspected]
            rules = self._proposal.rules()
        return (
            UnknownLines(scopes, "\n".join(settings_lines(rules)) if rules else "")
            if scopes
            else None
        )
