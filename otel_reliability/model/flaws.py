"""Flaws of telemetry: what a run's spans lost or report wrongly, the numbers that rest on it, and
what to change at the source.

`FLAWS` is the one table of them. A run has the kinds that its spans were read with (`Run.flaws`),
and those that its own fields show (`Flaw.found`); a window keeps them with the run's row. Flaws
that belong to no run (`of_spans`) are counted over a whole recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from otel_reliability.model.run import ModelCall, Run, Tools

MILLISECOND_NS: Final = 1_000_000
FIRST_NS: Final = 946_684_800 * 1_000_000_000
"""Start of the year 2000: no OpenTelemetry span is older, but for one in another unit."""
LAST_NS: Final = 4_102_444_800 * 1_000_000_000
"""Start of the year 2100."""

DROPPED: Final = "dropped_parts"
LOST_MODEL_CALLS: Final = "model_calls_lost"
FIRST_CALL_MISSING: Final = "first_model_call_missing"
SESSION_FILE: Final = "session_file_partial"
UNNAMED_AGENT: Final = "agent_unnamed"
SPLIT_TRACE: Final = "split_trace"
RUN_REPLAYED: Final = "run_replayed"
REPLAYS: Final = "replays"
REPORTED_TWICE: Final = "run_reported_twice"
INVENTED_SESSIONS: Final = "conversation_invented"
DUPLICATE_SPANS: Final = "duplicate_span"
LATE_SPANS: Final = "late_span"
CLOCK_SKEW: Final = "clock_skew"
NEGATIVE_DURATION: Final = "negative_duration"
LATE_ROOT: Final = "root_late"
ORPHAN_SPANS: Final = "orphan_span"
UNREAD_SPANS: Final = "unread_span"
UNKNOWN_SCOPE: Final = "scope_unrecognized"
LOST_ANNOTATIONS: Final = "annotation_lost"


class Flaw(NamedTuple):
    """A kind of flaw: what is found, the numbers that it affects, and what to change at the source.

    `decisive`: it can turn a verdict, so it is shown next to it. `of_spans`: it is counted in spans
    of a recording, else in runs. `found` returns whether a run shows it; None where only its spans
    do.
    """

    kind: str
    finding: str
    affects: str
    remedy: str
    decisive: bool = False
    of_spans: bool = False
    found: Callable[[Run], bool] | None = None


def has_wrong_unit(run: Run) -> bool:
    """Return whether times are no nanoseconds since 1970: they are of no possible year."""
    return not FIRST_NS <= run.start_ns <= run.end_ns < LAST_NS


def lacks_root(run: Run) -> bool:
    """Return whether the root span of a run never came."""
    return run.incomplete


def has_no_agent(run: Run) -> bool:
    """Return whether no span of an agent is above the steps of a run: it has the name of its
    service, and which steps are one run is a guess.
    """
    return run.implicit and not run.incomplete


def has_calls_of_messages(run: Run) -> bool:
    """Return whether calls of a run are known from the messages of its models only."""
    return run.tools is Tools.MESSAGES


def hides_calls(run: Run) -> bool:
    """Return whether the calls of a run cannot be observed."""
    return run.tools is Tools.UNOBSERVABLE


def lacks_arguments(run: Run) -> bool:
    """Return whether arguments of calls of a run are unknown."""
    return not run.arguments_known


def has_partial_tokens(run: Run) -> bool:
    """Return whether some model calls of a run report tokens, and others that answered do not. A
    call inside another is one call that two spans report; so is one that another follows at once
    (a wrapper that returns a stream).
    """
    calls = run.model_calls
    known = [call for call in calls if call.tokens is not None]
    if not known or len(known) == len(calls):
        return False
    return any(
        not call.failed and call.tokens is None and not any(_is_same(call, one) for one in known)
        for call in calls
    )


def _is_same(call: ModelCall, other: ModelCall) -> bool:
    if 0 <= other.start_ns - call.end_ns < MILLISECOND_NS:
        return True
    inner, outer = sorted((call, other), key=lambda one: one.end_ns - one.start_ns)
    return outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns


def has_skewed_clock(run: Run) -> bool:
    """Return whether a call of a run begins before the run: its service's clock is behind."""
    first = run.start_ns
    calls = run.tool_calls
    models = run.model_calls
    return bool((calls and calls[0].start_ns < first) or (models and models[0].start_ns < first))


def has_tied_calls(run: Run) -> bool:
    """Return whether times are whole milliseconds, and calls that began within one cannot be put in
    order.
    """
    if run.start_ns % MILLISECOND_NS or run.end_ns % MILLISECOND_NS:
        return False
    starts = [call.start_ns for call in run.tool_calls or ()]
    return len(set(starts)) < len(starts) and not any(at % MILLISECOND_NS for at in starts)


def has_no_scope(run: Run) -> bool:
    """Return whether no span of a run names its instrumentation scope, while they show how the
    agent is made.
    """
    kinds = {kind for kind, _ in run.fingerprints}
    return bool(kinds) and "framework" not in kinds


def has_no_service(run: Run) -> bool:
    """Return whether the resource of a run names no service."""
    return not run.key.service_name


FLAWS: Final[tuple[Flaw, ...]] = (
    Flaw(
        "time_unit",
        "times that are no nanoseconds",
        "duration, order of runs, windows",
        "send startTimeUnixNano and endTimeUnixNano in nanoseconds since 1970",
        decisive=True,
        found=has_wrong_unit,
    ),
    Flaw(
        "root_missing",
        "root span missing",
        "paths, tools, outcome, duration",
        "export the agent's own span too: it was sampled away, or dropped",
        decisive=True,
        found=lacks_root,
    ),
    Flaw(
        "agent_missing",
        "steps without the span of an agent",
        "which steps are one run, the agent's name, outcome, duration",
        "put a span around the loop: gen_ai.operation.name = invoke_agent, with gen_ai.agent.name",
        found=has_no_agent,
    ),
    Flaw(
        UNNAMED_AGENT,
        "agents without a name",
        "which runs are of one agent: they have the name of their service",
        "set gen_ai.agent.name on the agent's span",
    ),
    Flaw(
        SPLIT_TRACE,
        "tool calls in traces of their own",
        "paths, tools, retries, loops",
        "propagate the context to tools (threads, streams, callbacks)",
        decisive=True,
    ),
    Flaw(
        DROPPED,
        "attributes, events or links dropped by the sender",
        "tokens, pressure, arguments, calls",
        "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (128) and its neighbours",
        decisive=True,
    ),
    Flaw(
        LOST_MODEL_CALLS,
        "agents that report more tokens than their model calls",
        "model calls, cost, token budget pressure",
        "export every span of the agent: some were dropped, or are in another trace",
        decisive=True,
    ),
    Flaw(
        FIRST_CALL_MISSING,
        "runs without their first model call",
        "model calls, tokens, cost",
        "export every model span; where a run goes on with another, name gen_ai.conversation.id",
    ),
    Flaw(
        SESSION_FILE,
        "session files that hold a part of a run only",
        "paths, tools, tokens, cost",
        "update the command-line agent, or read its telemetry instead",
        decisive=True,
    ),
    Flaw(
        "tokens_partial",
        "tokens of some model calls only",
        "tokens, cost, token budget pressure",
        "record gen_ai.usage.* on every model span; raise the attribute count limit",
        decisive=True,
        found=has_partial_tokens,
    ),
    Flaw(
        "calls_from_messages",
        "calls known from model messages only",
        "failed calls, retries",
        "give each call a span: gen_ai.operation.name = execute_tool",
        decisive=True,
        found=has_calls_of_messages,
    ),
    Flaw(
        "calls_unobservable",
        "tool calls not observable",
        "paths, tools, retries, loops",
        "give each call a span: gen_ai.operation.name = execute_tool",
        found=hides_calls,
    ),
    Flaw(
        "arguments_unknown",
        "arguments of calls unknown",
        "exact retries, loops and effects",
        "capture gen_ai.tool.call.arguments; only a keyed hash of them is kept",
        found=lacks_arguments,
    ),
    Flaw(
        CLOCK_SKEW,
        "calls outside of their caller's time",
        "duration, order of parallel steps",
        "synchronize the clocks of the services (NTP)",
        found=has_skewed_clock,
    ),
    Flaw(
        NEGATIVE_DURATION,
        "spans that end before they start",
        "duration, order of parallel steps",
        "take both times from one clock that never goes back, in nanoseconds",
    ),
    Flaw(
        "time_resolution",
        "calls that began in the same millisecond",
        "order of parallel steps",
        "send OTLP directly: the trace store keeps milliseconds only",
        found=has_tied_calls,
    ),
    Flaw(
        "scope_missing",
        "instrumentation scope missing",
        "recognition of frameworks, change by version",
        "send OTLP directly: the trace store drops the scope",
        found=has_no_scope,
    ),
    Flaw(
        "service_missing",
        "service name missing",
        "which agent a run belongs to",
        "set service.name in OTEL_RESOURCE_ATTRIBUTES",
        found=has_no_service,
    ),
    Flaw(
        INVENTED_SESSIONS,
        "a conversation id of its own in every run",
        "session reliability and consistency",
        "set gen_ai.conversation.id to the id of the application's conversation",
    ),
    Flaw(
        UNREAD_SPANS,
        "spans that could not be read",
        "every number of their runs",
        "inspect the sender: the report names the reasons",
        decisive=True,
        of_spans=True,
    ),
    Flaw(
        LATE_SPANS,
        "spans that came after their run was final",
        "paths, tokens, outcome of these runs",
        "raise assembly.linger and assembly.reopen, or flush the exporter sooner",
        decisive=True,
        of_spans=True,
    ),
    Flaw(
        ORPHAN_SPANS,
        "model or tool spans without an agent",
        "paths, tools, tokens of the run they belong to",
        "propagate the trace context, and export the agent's own span",
        decisive=True,
        of_spans=True,
    ),
    Flaw(
        LOST_ANNOTATIONS,
        "annotations that joined no run",
        "outcomes, tasks and all else that they report",
        "annotate inside the run, or above one run only: with reliability_run(...)",
        decisive=True,
        of_spans=True,
    ),
    Flaw(
        DUPLICATE_SPANS,
        "spans that came more than once",
        "none: each counts once",
        "remove the second exporter, or the retry that sends again what had arrived",
        of_spans=True,
    ),
    Flaw(
        LATE_ROOT,
        "roots that came after their run was final",
        "counters of outcomes and durations",
        "raise assembly.idle_timeout and assembly.reopen above the longest wait of a run",
    ),
    Flaw(
        RUN_REPLAYED,
        "runs that were reported again, step by step",
        "none where steps have ids, or the same times: each counts once",
        "export a run once; in a durable engine, record spans in activities only",
    ),
    Flaw(
        REPLAYS,
        "runs that begin with the same response as another run",
        "number of runs, paths, tokens, outcomes: a replayed run counts twice",
        "set gen_ai.conversation.id; record spans in activities only; leave out mocks and caches",
        decisive=True,
    ),
    Flaw(
        REPORTED_TWICE,
        "runs that two instrumentations report side by side",
        "number of runs, tokens, cost: each counts twice",
        "export the spans of one instrumentation only: filter the other by its scope",
        decisive=True,
    ),
    Flaw(
        UNKNOWN_SCOPE,
        "spans that look like agents' work, and are not recognized",
        "every number of their runs",
        "map them: inspect proposes mapping.spans",
        decisive=True,
        of_spans=True,
    ),
)
"""Every kind of flaw, those first that most numbers rest on."""

KINDS: Final = {flaw.kind: flaw for flaw in FLAWS}

_OF_RUNS: Final = tuple((flaw.kind, flaw.found) for flaw in FLAWS if not flaw.of_spans)


def flaws_of(run: Run) -> tuple[str, ...]:
    """Return the kinds of flaws of a run, in the order of the table.

    >>> from otel_reliability.testing import run
    >>> flaws_of(run(["search"], incomplete=True))
    ('root_missing',)
    """
    own = run.flaws
    return tuple(
        [
            kind
            for kind, found in _OF_RUNS
            if (found is not None and found(run)) or (own and kind in own)
        ]
    )
