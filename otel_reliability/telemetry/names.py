"""The table of instruments: every name that leaves this package as telemetry, with its unit and
attributes.

Metrics of windows are in `metrics.ALL_SPECS`, and `gauges()` makes instruments of them; all others
are listed here. Names are in development, like the conventions they build on: a name changes only
with a line in the changelog. Units stand in braces, so that every translator gives the same name to
Prometheus (`{ratio}`, `{score}`, `{run}`); seconds are `s`.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Literal, NamedTuple

from otel_reliability import metrics
from otel_reliability.model.run import FINGERPRINTS

SCOPE: Final = "otel_reliability"
"""The instrumentation scope. It has no version: with a new release every series would start again.
"""

PREFIX: Final = "agent.reliability."

SERVICE_NAMESPACE: Final = "service.namespace"
SERVICE_NAME: Final = "service.name"
ENVIRONMENT: Final = "deployment.environment.name"
AGENT_NAME: Final = "gen_ai.agent.name"
WINDOW: Final = "window"
TOOL: Final = "gen_ai.tool.name"
OK: Final = "ok"
OUTCOME: Final = "outcome"
SIGNAL: Final = "signal"
KIND: Final = "kind"

OTHER: Final = "__other__"
"""The agent, or the tool, of everything beyond a limit."""

InstrumentKind = Literal["gauge", "counter", "up_down_counter", "histogram"]


class Instrument(NamedTuple):
    """One line of the table."""

    name: str
    kind: InstrumentKind
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()


def _instrument(
    prefix: str, name: str, kind: InstrumentKind, unit: str, description: str, *attributes: str
) -> Instrument:
    return Instrument(prefix + name, kind, unit, description, attributes)


def _buckets(
    prefix: str,
    name: str,
    unit: str,
    description: str,
    boundaries: tuple[float, ...],
    *attributes: str,
) -> Instrument:
    return Instrument(prefix + name, "histogram", unit, description, attributes, boundaries)


_agent = partial(_instrument, PREFIX)
_own = partial(_instrument, "otel_reliability.")
_histogram = partial(_buckets, PREFIX)
_standard = partial(_buckets, "gen_ai.")

_SHARES: Final = tuple(step / 10 for step in range(1, 11))
_SECONDS: Final = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
_DOUBLING: Final = tuple(2**power / 100 for power in range(14))
_POWERS: Final = tuple(2**power for power in range(8))

# --- Agents ---------------------------------------------------------------------------------------

LAST_RUN: Final = _agent(
    "last_run.timestamp",
    "gauge",
    "s",
    "When the agent's latest run ended, as Unix time: an idle agent is not a healthy one.",
)
CHANGE_EVIDENCE: Final = _agent(
    "change.evidence",
    "gauge",
    "{decade}",
    "Evidence that the agent's behaviour has changed, by signal, as a power of ten; the "
    "alarm is raised at that of "
    "change.runs_per_false_alarm.",
    SIGNAL,
)

INFO: Final = _agent(
    "info",
    "gauge",
    "{agent}",
    "Always 1; its attributes show how the agent is made: models, version, hashes of "
    "system prompt and tools, instrumentation. "
    "They change with a change point only.",
    *FINGERPRINTS,
)

OPEN_RUN_USAGE: Final = _agent(
    "open_run.usage",
    "gauge",
    "{ratio}",
    (
        "Largest share of its bound that an open run has reached, by kind of usage; above 1 "
        "it exceeds the bound."
    ),
    KIND,
)
RUN_EXCESS: Final = _agent(
    "run.excess",
    "counter",
    "{run}",
    (
        "Runs that exceeded a bound while they were open, by kind of usage; __other__: runs "
        "whose agent was not known yet."
    ),
    KIND,
)
CHANGES: Final = _agent(
    "changes",
    "counter",
    "{change}",
    ("Changes of behaviour, by the signal that shows them most."),
    SIGNAL,
)
RUNS: Final = _agent("runs", "counter", "{run}", "Final runs, by outcome.", OUTCOME)
RUN_ERRORS: Final = _agent(
    "run.errors",
    "counter",
    "{run}",
    "Final runs that ended in an error, of agents with an objective on errors.",
)
REVISIONS: Final = _agent(
    "run.revisions", "counter", "{run}", ("Closed runs that late spans changed or withdrew.")
)
LATE_OUTCOMES: Final = _agent(
    "run.late_outcomes",
    "counter",
    "{run}",
    "Outcomes that became known after their run was final, by outcome.",
    OUTCOME,
)
TOOL_CALLS: Final = _agent(
    "tool_calls",
    "counter",
    "{call}",
    "Tool calls, each counted once, for the agent that made it.",
    TOOL,
    OK,
)
RETRIES: Final = _agent(
    "retries", "counter", "{retry}", ("Tool calls that repeat one that failed."), TOOL
)
RETRY_EXPLOSIONS: Final = _agent(
    "retry_explosions",
    "counter",
    "{run}",
    "Runs in which one call was retried up to the threshold or beyond.",
)

PATH_DISTANCE: Final = _histogram(
    "run.path_distance",
    "{ratio}",
    (
        "Mean edit distance of a run's path to the other runs of its task in the window, 0 "
        "to 1. Not weighted."
    ),
    _SHARES,
)
TOKEN_PRESSURE: Final = _histogram(
    "run.token_pressure",
    "{ratio}",
    ("Largest share of its model's context that a call of the run used, 0 to 1. Not weighted."),
    _SHARES,
)
RUN_RETRIES: Final = _histogram(
    "run.retries",
    "{retry}",
    "Retried tool calls of a run. Not weighted.",
    (0, 1, 2, 3, 5, 8, 13, 21, 34),
)
RUN_SCORE: Final = _histogram(
    "run.score",
    "{score}",
    (
        "The agent's window score at the time a run is recorded, with the run as exemplar. "
        "Not weighted."
    ),
    tuple(range(10, 101, 10)),
)
RUN_DURATION: Final = _histogram(
    "run.duration", "s", "Time from a run's first span to its last. Not weighted.", _SECONDS
)
RUN_TOKENS: Final = _histogram(
    "run.tokens",
    "{token}",
    "Input and output tokens of a run. Not weighted.",
    (1_000, 3_000, 10_000, 30_000, 100_000, 300_000),
)
RUN_COST: Final = _histogram(
    "run.cost",
    "{usd}",
    "Cost of a run, where it is known: as reported, else tokens at list prices. Not weighted.",
    (0.001, 0.01, 0.1, 1, 10),
)
SESSION_RELIABILITY: Final = _histogram(
    "session.reliability",
    "{ratio}",
    "Reliability of a session, 0 to 1, recorded when it closes.",
    _SHARES,
)
SESSION_CONSISTENCY: Final = _histogram(
    "session.consistency",
    "{ratio}",
    "Consistency of a session, 0 to 1, recorded when it closes.",
    _SHARES,
)

STANDARD_DURATION: Final = _standard(
    "invoke_agent.duration", "s", ("Duration of an agent invocation."), _DOUBLING
)
STANDARD_TOOL_CALLS: Final = _standard(
    "invoke_agent.tool_calls", "{tool_call}", ("Tool calls of an agent invocation."), _POWERS
)
STANDARD_INFERENCE_CALLS: Final = _standard(
    "invoke_agent.inference_calls",
    "{inference_call}",
    "Model calls of an agent invocation.",
    _POWERS,
)
STANDARD_TOOL_DURATION: Final = _standard(
    "execute_tool.duration", "s", "Duration of a tool call.", _DOUBLING, TOOL
)

COUNTERS: Final = (
    RUN_EXCESS,
    RUNS,
    RUN_ERRORS,
    REVISIONS,
    LATE_OUTCOMES,
    TOOL_CALLS,
    RETRIES,
    RETRY_EXPLOSIONS,
    CHANGES,
)
HISTOGRAMS: Final = (
    PATH_DISTANCE,
    TOKEN_PRESSURE,
    RUN_RETRIES,
    RUN_SCORE,
    RUN_DURATION,
    RUN_TOKENS,
    RUN_COST,
    SESSION_RELIABILITY,
    SESSION_CONSISTENCY,
)
STANDARD: Final = (
    STANDARD_DURATION,
    STANDARD_TOOL_CALLS,
    STANDARD_INFERENCE_CALLS,
    STANDARD_TOOL_DURATION,
)
"""The semantic conventions' own metrics of agents and tools: emitted where the user asks for them.
"""

# --- Self-telemetry -------------------------------------------------------------------------------

SPANS: Final = _own(
    "spans",
    "counter",
    "{span}",
    (
        "Spans by disposition (received, used, other, late, duplicate, malformed, refused) "
        "and reason."
    ),
    "disposition",
    "reason",
)
SELF_RUNS: Final = _own(
    "runs",
    "counter",
    "{run}",
    ("Recorded runs: source of the outcome, reason of closing, whether nested."),
    "outcome.source",
    "closed_by",
    "nested",
)
OPEN_RUNS: Final = _own("runs.open", "up_down_counter", "{run}", "Runs that are not closed yet.")
CLOSED_RUNS: Final = _own("runs.closed", "counter", "{run}", "Closed runs, by reason.", "reason")
INCOMPLETE_RUNS: Final = _own(
    "runs.incomplete", "counter", "{run}", ("Runs closed although their own root never arrived.")
)
REVISED_RUNS: Final = _own(
    "runs.revised", "counter", "{run}", ("Closed runs that late spans changed or withdrew.")
)
LATE_RUNS: Final = _own(
    "runs.late", "counter", "{run}", ("Runs that arrived too late to count in a window."), "window"
)
CLAMPED_RUNS: Final = _own(
    "runs.clamped",
    "counter",
    "{run}",
    ("Runs that ended too far in the future, counted as ending sooner."),
)
AGENTS: Final = _own("agents", "up_down_counter", "{agent}", "Agents that have runs now.")
EXPIRED_AGENTS: Final = _own(
    "agents.expired", "counter", "{agent}", ("Agents that expired because they were idle.")
)
SESSIONS: Final = _own(
    "sessions",
    "up_down_counter",
    "{session}",
    ("Sessions that are remembered, open or closed."),
    "state",
)
LIMIT_USED: Final = _own("limit.used", "gauge", "{item}", "How much of a limit is used.", "limit")
LIMIT_VALUE: Final = _own("limit.value", "gauge", "{item}", "The limit itself.", "limit")
LIMIT_HITS: Final = _own("limit.hits", "counter", "{item}", "Items beyond a limit.", "limit")
QUEUE_LENGTH: Final = _own(
    "queue.length", "up_down_counter", "{span}", ("Spans that wait to be read, in process.")
)
QUEUE_CAPACITY: Final = _own(
    "queue.capacity",
    "up_down_counter",
    "{span}",
    "Queue length from which the host's threads help, in process.",
)
EVENT_LAG: Final = _own(
    "event_lag", "gauge", "s", ("Time between the end of the last received span and its receipt.")
)
COLLECT_DURATION: Final = _own(
    "collect.duration",
    "gauge",
    "s",
    "Time that the last collection took to read the windows, in process.",
)
ATTRIBUTES_REFUSED: Final = _own(
    "attributes.refused",
    "counter",
    "{attribute}",
    "Attributes of users with invalid values, by attribute and reason.",
    "attribute",
    "reason",
)
EVALUATIONS_REFUSED: Final = _own(
    "evaluations.refused",
    "counter",
    "{evaluation}",
    "Evaluations that joined no run, by reason.",
    "reason",
)
FAULTS: Final = _own(
    "faults",
    "counter",
    "{fault}",
    ("Errors of this package that were kept from the host, by place."),
    "place",
)

SELF: Final = (
    SPANS,
    SELF_RUNS,
    OPEN_RUNS,
    CLOSED_RUNS,
    INCOMPLETE_RUNS,
    REVISED_RUNS,
    LATE_RUNS,
    CLAMPED_RUNS,
    AGENTS,
    EXPIRED_AGENTS,
    SESSIONS,
    LIMIT_USED,
    LIMIT_VALUE,
    LIMIT_HITS,
    QUEUE_LENGTH,
    QUEUE_CAPACITY,
    EVENT_LAG,
    COLLECT_DURATION,
    ATTRIBUTES_REFUSED,
    EVALUATIONS_REFUSED,
    FAULTS,
)
"""Self-telemetry of every deployment mode."""

REQUESTS: Final = _own(
    "requests",
    "counter",
    "{request}",
    ("Requests to the service by outcome: accepted, partial, or the reason of the refusal."),
    "signal",
    "transport",
    "outcome",
)
REQUESTS_WAITING: Final = _own(
    "requests.waiting", "up_down_counter", "{request}", ("Requests that wait to be committed.")
)
LOG_RECORDS: Final = _own(
    "log_records",
    "counter",
    "{record}",
    ("Received log records: evaluations, others, and malformed ones by reason."),
    "disposition",
    "reason",
)
RUN_RECORDS: Final = _own(
    "run_records",
    "counter",
    "{record}",
    "Received run records: taken, duplicate, late, final_early.",
    "disposition",
)
READY: Final = _own(
    "ready",
    "gauge",
    "{state}",
    ("Whether requests are accepted now (1) or refused for the time being (0)."),
)
EXPORTS: Final = _own(
    "exports",
    "counter",
    "{request}",
    ("Exported requests, by content and outcome."),
    "sink",
    "outcome",
)
EXPORT_DURATION: Final = _own(
    "export.duration", "gauge", "s", ("Time that the last export took, by content."), "sink"
)

SERVICE: Final = (
    REQUESTS,
    REQUESTS_WAITING,
    LOG_RECORDS,
    RUN_RECORDS,
    READY,
    EXPORTS,
    EXPORT_DURATION,
)
"""Self-telemetry of the service."""

KAFKA_LAG: Final = _own(
    "kafka.lag",
    "gauge",
    "{message}",
    ("Messages of a partition that are not read yet."),
    "topic",
    "partition",
)
KAFKA_MESSAGES: Final = _own(
    "kafka.messages",
    "counter",
    "{message}",
    "Messages read, by topic: with a value, or ticks that carry the time only.",
    "topic",
    "kind",
)
KAFKA_DEAD_LETTERS: Final = _own(
    "kafka.dead_letters",
    "counter",
    "{message}",
    "Messages that could not be used, by reason.",
    "reason",
)
KAFKA_PARTITIONS: Final = _own(
    "kafka.partitions", "up_down_counter", "{partition}", ("Partitions assigned to this worker.")
)
KAFKA_REBALANCES: Final = _own(
    "kafka.rebalances", "counter", "{rebalance}", ("Reassignments of this worker's partitions.")
)
KAFKA_RESTORE: Final = _own(
    "kafka.restore.duration",
    "gauge",
    "s",
    "Time that the last assignment took, until all partitions worked.",
)
KAFKA_STATE: Final = _own(
    "kafka.state", "up_down_counter", "{byte}", ("Bytes of state on this worker's disk.")
)
KAFKA_STARTS: Final = _own(
    "kafka.starts",
    "counter",
    "{start}",
    "Starts of the stage, by the reason of the end before.",
    "reason",
)
KAFKA_TRACES: Final = _own(
    "kafka.traces", "up_down_counter", "{trace}", "Traces whose spans are stored.", "state"
)
KAFKA_APART: Final = _own(
    "kafka.apart",
    "counter",
    "{item}",
    "Items of two traces, which cannot be joined where the key is the trace, by kind.",
    "what",
)
KAFKA_RECORDS: Final = _own(
    "kafka.records", "counter", "{record}", ("Run records written, by change."), "change"
)

KAFKA: Final = (
    KAFKA_LAG,
    KAFKA_MESSAGES,
    KAFKA_DEAD_LETTERS,
    KAFKA_PARTITIONS,
    KAFKA_REBALANCES,
    KAFKA_RESTORE,
    KAFKA_STATE,
    KAFKA_STARTS,
    KAFKA_TRACES,
    KAFKA_APART,
    KAFKA_RECORDS,
)
"""Self-telemetry of workers on Kafka."""


def gauges() -> tuple[Instrument, ...]:
    """Return one observed gauge per metric of the table, and those of an agent that belong to no
    window.
    """
    emitted = (spec for spec in metrics.ALL_SPECS.values() if spec.emitted)
    measured = (
        Instrument(PREFIX + spec.name, "gauge", spec.unit, spec.description) for spec in emitted
    )
    return (*measured, LAST_RUN, CHANGE_EVIDENCE, INFO, OPEN_RUN_USAGE)
