"""A run: what is rebuilt from the spans of one invocation of an agent, and its changes: the only
thing that leaves assembly.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from otel_reliability.model.span import Evaluation, SpanId, TraceId
from otel_reliability.model.sums import known_sum


class Outcome(enum.Enum):
    """The outcome of a run. COMPLETED: it ended without an error, which is *unknown* for every
    metric that needs outcomes. PAUSED: it waits for a person; CANCELLED: a person stopped it. Both
    are neither success nor failure.
    """

    SUCCESS = "success"
    FAILURE = "failure"
    COMPLETED = "completed"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class CloseReason(enum.Enum):
    """Why a run was closed. Stamped on the run, and the same word in self-telemetry."""

    ROOT = "root"
    IDLE = "idle_timeout"
    SPAN_LIMIT = "span_limit"
    MEMORY = "memory"
    OPEN_RUNS = "open_runs"
    FLUSH = "force_flush"
    SHUTDOWN = "shutdown"
    END_OF_INPUT = "end_of_input"


class Tools(enum.Enum):
    """The source of a run's tool calls."""

    OBSERVED = "observed"
    MESSAGES = "messages"
    UNOBSERVABLE = "unobservable"


FINGERPRINTS: Final = ("model", "reasoning", "version", "prompt", "tools", "framework")
"""Kinds of fingerprints: models, levels of reasoning asked of them, versions of agent and service,
system prompts, tool definitions, instrumentation scopes.
"""


HASHED: Final = frozenset({"prompt", "tools"})
"""Kinds of fingerprints whose values are hashes, but for prompts that have a name or a version."""
_HASH: Final = re.compile(r"[0-9a-f]{16}(?:, [0-9a-f]{16})*")


def is_hashed(kind: str, value: str) -> bool:
    """Return whether the value of a fingerprint is a hash, or several.

    >>> is_hashed("prompt", "00c0ffee00c0ffee"), is_hashed("prompt", "refunds 3")
    (True, False)
    """
    return kind in HASHED and _HASH.fullmatch(value) is not None


def short_value(kind: str, value: str) -> str:
    """Return the value of a fingerprint as sentences show it: of a hash the first digits."""
    return value[:8] if is_hashed(kind, value) else value


ServiceKey: TypeAlias = tuple[str, str, str]
"""Namespace, name and environment of a service."""


class AgentKey(NamedTuple):
    """The key of an agent, of its windows, series and report lines. Absent parts are empty."""

    service_namespace: str
    service_name: str
    environment: str
    agent: str
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def service(self) -> ServiceKey:
        return (self.service_namespace, self.service_name, self.environment)


class ToolCall(Struct, frozen=True, gc=False, array_like=True):
    """One tool call of a run. `retry`: it repeats a call that failed. `repeat`: it repeats one that
    succeeded (a loop).

    `chain` is the position in its retry chain (0: the first attempt). `agent` is the agent that
    made it. `has_effect`: it succeeded and changed something (`model.tools`).
    """

    name: str
    ok: bool
    retry: bool
    repeat: bool
    chain: int
    agent: str
    start_ns: int
    end_ns: int
    arguments: bytes | None
    result: bytes | None
    effect: bytes | None
    has_effect: bool = False


class ModelCall(Struct, frozen=True, gc=False, array_like=True):
    """One model call of a run. Of its input tokens, `cached_tokens` were read from the provider's
    cache; None where that is not reported.
    """

    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    failed: bool
    agent: str
    start_ns: int
    end_ns: int
    cached_tokens: int | None = None

    @property
    def tokens(self) -> int | None:
        """Input and output tokens; None where neither is known."""
        return known_sum((self.input_tokens, self.output_tokens))


class Compression(Struct, frozen=True, gc=False, array_like=True):
    """One compression of the context during a run: a step, but no call. `ok`: the agent went on
    with the compressed context.

    Tokens are those of the context; None, like `trigger` (`auto`, `manual`), where not reported.
    `agent` is whose context it was.
    """

    ok: bool
    agent: str
    start_ns: int
    end_ns: int
    tokens_before: int | None
    tokens_after: int | None
    trigger: str | None


class Run(Struct, frozen=True, gc=False, array_like=True):
    """One agent invocation, first span to last. `otel-reliability runs` prints it, and windows make
    their rows of it.

    `tool_calls` and `path` are None when the tools are unobservable. The path is the ordered tool
    names, hand-offs as `→agent`; its parallel groups are in canonical order. `tool_calls` are in
    the order of the clock. `weight` is how many runs this one represents under head sampling, 1
    without. `fingerprints` are what the telemetry shows of how the agent is made: sorted pairs of a
    kind (`FINGERPRINTS`) and a value; prompts and tool definitions as keyed hashes. `evaluations`
    are the latest of each name, sorted by name. `request` is the sketch of what the user asked;
    None where that is not known. `flaws` are the kinds of flaws of its telemetry that its other
    fields do not show (`model.flaws`). `outcome_key` is the hash of the business key by which an
    outcome can name the run later. `first_step` is the id of its first model response, else of its
    first tool call, else when it and its first step began; None where that identifies none.
    `last_response` is the id of its last model response, `previous_response` that of the response
    that it continues. `resumes` is the run of its conversation that waited for a person, and that
    it goes on with.
    """

    run_id: str
    trace_id: TraceId
    root_span_id: SpanId | None
    key: AgentKey
    session_id: str | None
    task_id: str | None
    trial: int | None
    condition: str
    input_class: str | None
    branches: tuple[tuple[str, str], ...]
    nested: bool
    implicit: bool
    incomplete: bool
    start_ns: int
    end_ns: int
    path: tuple[str, ...] | None
    tools: Tools
    tool_calls: tuple[ToolCall, ...] | None
    model_calls: tuple[ModelCall, ...]
    input_tokens: int | None
    output_tokens: int | None
    token_pressure: float | None
    arguments_known: bool
    outcome: Outcome
    outcome_source: str
    confidence: float | None
    cost: float | None
    violations: tuple[tuple[str, str], ...] | None
    evaluations: tuple[Evaluation, ...]
    weight: int
    span_count: int
    closed_by: CloseReason = CloseReason.ROOT
    fingerprints: tuple[tuple[str, str], ...] = ()
    compressions: tuple[Compression, ...] = ()
    ended_in_error: bool | None = None
    request: bytes | None = None
    flaws: tuple[str, ...] = ()
    outcome_key: str | None = None
    first_step: str | None = None
    last_response: str | None = None
    previous_response: str | None = None
    resumes: str | None = None

    @property
    def success(self) -> bool | None:
        """True or False where the outcome is known, else None."""
        if self.outcome is Outcome.SUCCESS:
            return True
        return False if self.outcome is Outcome.FAILURE else None

    @property
    def duration_s(self) -> float:
        """Seconds from its first span's start to its last span's end."""
        return (self.end_ns - self.start_ns) / 1e9

    @property
    def tokens(self) -> int | None:
        """Input and output tokens; None where neither is known."""
        return known_sum((self.input_tokens, self.output_tokens))

    @property
    def retries(self) -> int | None:
        """The number of tool calls that were retries; None when the tools are unobservable."""
        return None if self.tool_calls is None else sum([call.retry for call in self.tool_calls])

    @property
    def longest_retry_chain(self) -> int | None:
        """The greatest number of retries of one call; None when the tools are unobservable."""
        return (
            None
            if self.tool_calls is None
            else max([call.chain for call in self.tool_calls], default=0)
        )


class RunChange(enum.Enum):
    """CLOSED: a run is done. REVISED: late spans changed a closed run (`previous` is what it was).
    WITHDRAWN: a closed run turned out to be part of another, or none. FINAL: its `reopen` has
    passed, it will not change any more: counters and histograms record it now, once.
    """

    CLOSED = "closed"
    REVISED = "revised"
    WITHDRAWN = "withdrawn"
    FINAL = "final"


class RunEvent(Struct, frozen=True, gc=False):
    """One change of one run. `previous` is set for REVISED only; for WITHDRAWN `run` is the run
    that goes.
    """

    change: RunChange
    run: Run
    previous: Run | None = None
