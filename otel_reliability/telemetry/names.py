"""Every name that leaves this package as telemetry, once: instruments, their units, their attributes.

Window metrics are not listed here: `metrics.SPECS` is their table, and `gauges()` turns it into instruments. What is listed
here are the instruments that no window metric stands behind. Names are in development, like the conventions they build on:
a name changes only with a line in the changelog. Units stand in braces, so that Prometheus shows the same name whoever
translates (`{ratio}`, `{score}`, `{run}`); seconds are `s`.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from otel_reliability import metrics

SCOPE: Final = "otel_reliability"
"""The instrumentation scope. It has no version: a new release would start every series anew."""

PREFIX: Final = "agent.reliability."
SELF_PREFIX: Final = "otel_reliability."

SERVICE_NAMESPACE: Final = "service.namespace"
SERVICE_NAME: Final = "service.name"
ENVIRONMENT: Final = "deployment.environment.name"
AGENT_NAME: Final = "gen_ai.agent.name"
WINDOW: Final = "window"
TOOL: Final = "gen_ai.tool.name"
OK: Final = "ok"
OUTCOME: Final = "outcome"
SIGNAL: Final = "signal"

OTHER: Final = "__other__"
"""The agent, or the tool, of whatever had no place below a ceiling."""

InstrumentKind = Literal["gauge", "counter", "up_down_counter", "histogram"]


class Instrument(NamedTuple):
    """One line of the table. `observed`: its values are asked for at a collection, not recorded as they come."""

    name: str
    kind: InstrumentKind
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
    observed: bool = False


def _shares() -> tuple[float, ...]:
    return tuple(step / 20 for step in range(1, 21))


LAST_RUN: Final = Instrument(
    PREFIX + "last_run", "gauge", "s", "When the agent's latest run ended, as Unix time: an idle agent is not a healthy one.",
    observed=True,
)  # fmt: skip

CHANGE_EVIDENCE: Final = Instrument(
    PREFIX + "change.evidence", "gauge", "{decade}",
    "Evidence that the agent's behaviour has changed, by signal, as a power of ten; the alarm comes at that of "
    "change.runs_per_false_alarm.",
    (SIGNAL,), observed=True,
)  # fmt: skip

CHANGES: Final = Instrument(
    PREFIX + "changes",
    "counter",
    "{change}",
    "Changes of behaviour that were noticed, by the signal that tells them.",
    (SIGNAL,),
)
RUNS: Final = Instrument(
    PREFIX + "runs", "counter", "{run}", "Runs that are over and will not change any more, by outcome.", (OUTCOME,)
)
REVISIONS: Final = Instrument(
    PREFIX + "run.revisions", "counter", "{run}", "Closed runs that late spans changed or took back."
)
TOOL_CALLS: Final = Instrument(
    PREFIX + "tool_calls", "counter", "{call}", "Tool calls, each counted once, for the agent that took it.", (TOOL, OK)
)
RETRIES: Final = Instrument(
    PREFIX + "retries", "counter", "{retry}", "Tool calls that repeat one that failed.", (TOOL,)
)
RETRY_EXPLOSIONS: Final = Instrument(
    PREFIX + "retry_explosions", "counter", "{run}", "Runs in which one call was retried up to the threshold or beyond."
)

PATH_DISTANCE: Final = Instrument(
    PREFIX + "run.path_distance", "histogram", "{ratio}",
    "How unlike a run's path is to the other runs of its task in the window: mean edit distance, 0 to 1. Not weighted.",
    boundaries=_shares(),
)  # fmt: skip
TOKEN_PRESSURE: Final = Instrument(
    PREFIX + "run.token_pressure", "histogram", "{ratio}",
    "The largest share of its model's context that a call of the run took, 0 to 1. Not weighted.",
    boundaries=_shares(),
)  # fmt: skip
RUN_RETRIES: Final = Instrument(
    PREFIX + "run.retries", "histogram", "{retry}", "Retried tool calls of a run. Not weighted.",
    boundaries=(0, 1, 2, 3, 5, 8, 13, 21, 34),
)  # fmt: skip
RUN_SCORE: Final = Instrument(
    PREFIX + "run.score", "histogram", "{score}",
    "The agent's window score at the time a run is recorded, with the run as exemplar. Not weighted.",
    boundaries=tuple(range(5, 101, 5)),
)  # fmt: skip

SESSION_RELIABILITY: Final = Instrument(
    PREFIX + "session.reliability", "histogram", "{ratio}",
    "How far a session was from any grave failure, 0 to 1, recorded when it closes.", boundaries=_shares(),
)  # fmt: skip
SESSION_CONSISTENCY: Final = Instrument(
    PREFIX + "session.consistency", "histogram", "{ratio}",
    "How smoothly the agent performed through a session, 0 to 1, recorded when it closes.", boundaries=_shares(),
)  # fmt: skip

STANDARD_DURATION: Final = Instrument(
    "gen_ai.invoke_agent.duration", "histogram", "s", "Duration of an agent invocation.",
    boundaries=(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)  # fmt: skip
STANDARD_TOOL_CALLS: Final = Instrument(
    "gen_ai.invoke_agent.tool_calls", "histogram", "{tool_call}", "Tool calls of an agent invocation.",
    boundaries=(1, 2, 4, 8, 16, 32, 64, 128),
)  # fmt: skip
STANDARD_INFERENCE_CALLS: Final = Instrument(
    "gen_ai.invoke_agent.inference_calls", "histogram", "{inference_call}", "Model calls of an agent invocation.",
    boundaries=(1, 2, 4, 8, 16, 32, 64, 128),
)  # fmt: skip

COUNTERS: Final = (RUNS, REVISIONS, TOOL_CALLS, RETRIES, RETRY_EXPLOSIONS, CHANGES)
HISTOGRAMS: Final = (PATH_DISTANCE, TOKEN_PRESSURE, RUN_RETRIES, RUN_SCORE, SESSION_RELIABILITY, SESSION_CONSISTENCY)
STANDARD: Final = (STANDARD_DURATION, STANDARD_TOOL_CALLS, STANDARD_INFERENCE_CALLS)
"""The semantic conventions' own metrics of agents: emitted where the user asks for them."""


def gauges() -> tuple[Instrument, ...]:
    """One observed gauge a metric, in the order of the table, when the latest run was, and the evidence for a change."""
    measured = (
        Instrument(PREFIX + spec.name, "gauge", spec.unit, spec.description, observed=True)
        for spec in metrics.ALL_SPECS
    )
    return (*measured, LAST_RUN, CHANGE_EVIDENCE)


def _own(name: str, kind: InstrumentKind, unit: str, description: str, *attributes: str) -> Instrument:
    return Instrument(SELF_PREFIX + name, kind, unit, description, attributes, observed=True)


SPANS: Final = _own(
    "spans", "counter", "{span}",
    "Spans received, and what became of them: used, other, late, duplicate, malformed or refused, and why.",
    "disposition", "reason",
)  # fmt: skip
SELF_RUNS: Final = _own(
    "runs", "counter", "{run}", "Runs recorded: where the outcome was read, why the run was closed, whether it was nested.",
    "outcome.source", "closed_by", "nested",
)  # fmt: skip
OPEN_RUNS: Final = _own("runs.open", "up_down_counter", "{run}", "Runs that are not closed yet.")
CLOSED_RUNS: Final = _own("runs.closed", "counter", "{run}", "Runs closed, by reason.", "reason")
INCOMPLETE_RUNS: Final = _own("runs.incomplete", "counter", "{run}", "Runs closed although their own root never came.")
REVISED_RUNS: Final = _own("runs.revised", "counter", "{run}", "Closed runs that late spans changed or took back.")
LATE_RUNS: Final = _own("runs.late", "counter", "{run}", "Runs that came too late to count in a window.", "window")
CLAMPED_RUNS: Final = _own(
    "runs.clamped", "counter", "{run}", "Runs that ended too far in the future, taken as ending sooner."
)
AGENTS: Final = _own("agents", "up_down_counter", "{agent}", "Agents that have runs now.")
EXPIRED_AGENTS: Final = _own(
    "agents.expired", "counter", "{agent}", "Agents let go of, for no run of theirs had come for long."
)
SESSIONS: Final = _own(
    "sessions", "up_down_counter", "{session}", "Sessions that are remembered, open or closed.", "state"
)
CEILING_USED: Final = _own("ceiling.used", "gauge", "{item}", "How much of a ceiling is taken.", "ceiling")
CEILING_LIMIT: Final = _own("ceiling.limit", "gauge", "{item}", "Where a ceiling is.", "ceiling")
CEILING_HITS: Final = _own("ceiling.hits", "counter", "{item}", "What found no place below a ceiling.", "ceiling")
QUEUE_LENGTH: Final = _own("queue.length", "up_down_counter", "{span}", "Spans that wait to be read.")
QUEUE_CAPACITY: Final = _own(
    "queue.capacity", "up_down_counter", "{span}", "Spans that may wait before the host helps out."
)
EVENT_LAG: Final = _own("event_lag", "gauge", "s", "Time between the end of the span last received and its receipt.")
COLLECT_DURATION: Final = _own(
    "collect.duration", "gauge", "s", "Time that the last collection took to read the windows."
)
EVIDENCE_REFUSED: Final = _own(
    "evidence.refused", "counter", "{attribute}", "Evidence on spans that could not stand, by attribute and reason.",
    "attribute", "reason",
)  # fmt: skip
EVALUATIONS_REFUSED: Final = _own(
    "evaluations.refused", "counter", "{evaluation}", "Judgements that joined no run, by reason.", "reason"
)
FAULTS: Final = _own("faults", "counter", "{fault}", "Errors of this package, kept from the host, by place.", "place")

SELF: Final = (
    SPANS, SELF_RUNS, OPEN_RUNS, CLOSED_RUNS, INCOMPLETE_RUNS, REVISED_RUNS, LATE_RUNS, CLAMPED_RUNS, AGENTS, EXPIRED_AGENTS,
    SESSIONS, CEILING_USED, CEILING_LIMIT, CEILING_HITS, QUEUE_LENGTH, QUEUE_CAPACITY, EVENT_LAG, COLLECT_DURATION,
    EVIDENCE_REFUSED, EVALUATIONS_REFUSED, FAULTS,
)  # fmt: skip
"""Self-telemetry: whether the numbers can be trusted, and what they cost."""

REQUESTS: Final = _own(
    "requests", "counter", "{request}", "Requests to the service, and what became of them: accepted, partial, or why refused.",
    "signal", "transport", "outcome",
)  # fmt: skip
REQUESTS_WAITING: Final = _own(
    "requests.waiting", "up_down_counter", "{request}", "Requests that wait to be committed."
)
LOG_RECORDS: Final = _own(
    "log_records", "counter", "{record}", "Log records received: evaluations, runs, others, and malformed ones by reason.",
    "disposition", "reason",
)  # fmt: skip
RUN_RECORDS: Final = _own(
    "run_records", "counter", "{record}", "Changes of runs told by other services: taken, duplicate, late, settled_early.",
    "disposition",
)  # fmt: skip
READY: Final = _own(
    "ready", "gauge", "{state}", "Whether requests are taken now (1) or refused for the time being (0)."
)
EXPORTS: Final = _own(
    "exports",
    "counter",
    "{request}",
    "Requests sent to others, by what they carry and what became of them.",
    "sink",
    "outcome",
)
EXPORT_DURATION: Final = _own(
    "export.duration", "gauge", "s", "Time that the last sending took, by what it carried.", "sink"
)

SERVICE: Final = (
    REQUESTS, REQUESTS_WAITING, LOG_RECORDS, RUN_RECORDS, READY, EXPORTS, EXPORT_DURATION,
)  # fmt: skip
"""Self-telemetry that only the service has."""

KAFKA_LAG: Final = _own(
    "kafka.lag", "gauge", "{message}", "Messages of a partition that are not read yet.", "topic", "partition"
)
KAFKA_MESSAGES: Final = _own(
    "kafka.messages", "counter", "{message}", "Messages read, by topic: with a value, or ticks that tell the time only.",
    "topic", "kind",
)  # fmt: skip
KAFKA_DEAD_LETTERS: Final = _own(
    "kafka.dead_letters", "counter", "{message}", "Messages that could not be used, by reason.", "reason"
)
KAFKA_PARTITIONS: Final = _own("kafka.partitions", "up_down_counter", "{partition}", "Partitions this worker has.")
KAFKA_REBALANCES: Final = _own(
    "kafka.rebalances", "counter", "{rebalance}", "How often this worker's partitions were given out anew."
)
KAFKA_RESTORE: Final = _own(
    "kafka.restore.duration", "gauge", "s", "Time that the last take-over of partitions took, until all were at work."
)
KAFKA_STATE: Final = _own("kafka.state", "up_down_counter", "{byte}", "Bytes of state on this worker's disk.")
KAFKA_STARTS: Final = _own(
    "kafka.starts", "counter", "{start}", "How often the stage was started, by why the time before ended.", "reason"
)
KAFKA_TRACES: Final = _own(
    "kafka.traces", "up_down_counter", "{trace}", "Traces that are remembered, and those of them in memory.", "state"
)
KAFKA_APART: Final = _own(
    "kafka.apart", "counter", "{item}",
    "What belongs to two traces and cannot be joined where the key is the trace, by what it is.", "what",
)  # fmt: skip
KAFKA_RECORDS: Final = _own("kafka.records", "counter", "{record}", "Run records written, by change.", "change")

KAFKA: Final = (
    KAFKA_LAG, KAFKA_MESSAGES, KAFKA_DEAD_LETTERS, KAFKA_PARTITIONS, KAFKA_REBALANCES, KAFKA_RESTORE, KAFKA_STATE,
    KAFKA_STARTS, KAFKA_TRACES, KAFKA_APART, KAFKA_RECORDS,
)  # fmt: skip
"""Self-telemetry that only workers on Kafka have."""
