"""The alerts, once: Prometheus' rules, Grafana's, and the runbook are all made from this table.

Each alert is a value and a limit that it must not pass. What keeps it from crying wolf (enough
runs, runs that are recent) belongs to the value: without it there is no value. Labels are read as
`.Labels`, without a dollar: Grafana would take a word behind a dollar for a variable of the
environment when it reads a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from dashboards import objectives
from dashboards.promql import BY, WHO, greatest, metric, one, sample_of
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.telemetry import names

ENOUGH: Final = 20
"""Runs in a window below which its numbers raise no alert."""
AGENT: Final = (
    "{{ with .Labels.service_namespace }}{{ . }}/{{ end }}"
    "{{ .Labels.service_name }}/{{ .Labels.gen_ai_agent_name }}"
    "{{ with .Labels.deployment_environment_name }} in {{ . }}{{ end }}"
)
"""The agent, with what tells it from others of its name."""


class Alert(NamedTuple):
    """One alert: when it fires, and what its reader must know."""

    name: str
    severity: Literal["info", "warning", "critical"]
    value: str
    above: float
    lasts: str
    summary: str
    description: str
    means: str
    look: Sequence[str]
    do: Sequence[str]
    board: str = "agent"
    keeps: str = "10m"
    """How long it goes on firing without its value, so that a gap between scrapes resets nothing.
    """
    unit: str = ""
    """How Prometheus writes the value: `humanize`, `humanizePercentage`, `humanizeDuration`."""


RUNS: Final = one(metric("window.runs"))
HAS_RUNS: Final = f"({RUNS} >= {ENOUGH})"
TIER: Final = metric("tier")
RUNS_TOTAL: Final = sample_of(names.RUNS)
LAST_RUN: Final = sample_of(names.LAST_RUN)
READY: Final = sample_of(names.READY)
SPANS: Final = sample_of(names.SPANS)


def ran(over: str, least: int = 1) -> str:
    """Agents that had at least so many recent runs: an idle agent raises no alert for ever."""
    return f"(sum by ({WHO}) (increase({RUNS_TOTAL}[{over}])) >= {least})"


def _rank(offset: str = "") -> str:
    """3 for STABLE, 2 for VARIABLE, 1 for UNSTABLE, 0 for CRITICAL."""
    weights = {tier.name: len(Tier) - 1 - at for at, tier in enumerate(Tier)}
    told = " + ignoring (tier) ".join(
        f'{weight} * {one(f"""{TIER}{{tier="{name}"}}""", when=offset)}'
        for name, weight in weights.items()
        if weight
    )
    return f"sum without (tier) ({told})"


def _mean_score(over: str, offset: str = "") -> str:
    return f"max without (instance, job) (avg_over_time({metric('score')}[{over}]{offset}))"


_EXPLODED: Final = f"sum by ({WHO}) (increase({sample_of(names.RETRY_EXPLOSIONS)}[1h])) > 0"
_RISKY: Final = (
    f'sum by ({WHO}) (increase({sample_of(names.SESSION_RELIABILITY)}_bucket{{le="0.5"}}[6h]))'
)
_CLOSED: Final = f"sum by ({WHO}) (increase({sample_of(names.SESSION_RELIABILITY)}_count[6h]))"
_LOST: Final = f'sum by (job) (increase({SPANS}{{disposition=~"refused|malformed|late"}}[15m]))'
_RECEIVED: Final = f'sum by (job) (increase({SPANS}{{disposition="received"}}[15m]))'
_REQUESTS: Final = sample_of(names.REQUESTS)
_TURNED_AWAY: Final = f'sum by (job) (increase({_REQUESTS}{{outcome!~"accepted|partial"}}[15m]))'
_ASKED: Final = f"sum by (job) (increase({_REQUESTS}[15m]))"
_UNSENT: Final = (
    f'sum by (job, sink) (increase({sample_of(names.EXPORTS)}{{outcome!="accepted"}}[15m]))'
)
_SENT: Final = f"sum by (job, sink) (increase({sample_of(names.EXPORTS)}[15m]))"
_CHANGES: Final = sample_of(names.CHANGES)
_FIRST_CHANGE: Final = (
    f"(sum by ({WHO}, signal) ({_CHANGES}) unless sum by ({WHO}, signal) ({_CHANGES} offset 5m))"
    f" and on ({WHO}) sum by ({WHO}) ({RUNS_TOTAL} offset 5m)"
)
"""The counter begins with the first change, so that no increase shows that one; but the agent's
runs were there before.
"""
_KNOWN: Final = f'(sum by ({WHO}) ({RUNS_TOTAL}{{outcome=~"success|failure"}}) >= {ENOUGH})'
"""Agents with enough outcomes to speak of a rate."""
_LOOK: Final = "The dashboard *Agent*: the alert's link opens it for this agent."

_LAG: Final = f"sum by (job, topic) ({sample_of(names.KAFKA_LAG)})"
_LAG_BEFORE: Final = f"sum by (job, topic) ({sample_of(names.KAFKA_LAG)} offset 15m)"
_DEAD: Final = sample_of(names.KAFKA_DEAD_LETTERS)


class Recipe(NamedTuple):
    """A question that users ask Prometheus, and how."""

    name: str
    value: str
    about: str


RECIPES: Final = (
    Recipe(
        "Agents that are worse than last week",
        f"({_mean_score('1d', ' offset 7d')} - {_mean_score('1d')} > 5)\n"
        f"and on ({BY}) ({greatest(metric('score_coverage'))} >= 60)",
        "Points by which the mean score of the last day is below that of the same day a week ago.",
    ),
    Recipe(
        "Retry rate by tool",
        f"sum by ({WHO}, gen_ai_tool_name) (rate({sample_of(names.RETRIES)}[1h]))\n"
        f"/ sum by ({WHO}, gen_ai_tool_name) (rate({sample_of(names.TOOL_CALLS)}[1h]))",
        "Share of the calls of each tool that repeat a failed call.",
    ),
    Recipe(
        "Cost of retries a day",
        f"sum by ({WHO}) ({greatest(metric('retry_cost_per_run'))})\n"
        f"* on ({WHO}) sum by ({WHO}) (increase({RUNS_TOTAL}[1d]))",
        "In USD, for agents whose telemetry has costs: the mean cost of the retries of a "
        "run, times the runs of a day. With "
        'several windows, select one: `{window="recent"}`.',
    ),
    Recipe(
        "Agents without data",
        f"time() - max by ({WHO}) ({LAST_RUN}) > 86400\n"
        f"or (max by ({WHO}) ({LAST_RUN}) unless on ({WHO}) {greatest(metric('score'))}) * 0",
        (
            "Seconds since the last run of agents that had none for a day; 0 for agents that "
            "run and have no score."
        ),
    ),
)
"""Recorded by nobody; the runbook lists them."""


ALERTS: Final = (
    Alert(
        "AgentFailing",
        "critical",
        f"({one(metric('verdict'))} == bool 0) and on ({BY}) {HAS_RUNS} and on ({WHO}) {ran('1h')}",
        0,
        "5m",
        f"{AGENT} fails too often, or fails now",
        "Its verdict is failing.",
        (
            "Even the upper end of the 95 % interval of its success rate, or of what its errors "
            "leave of it where outcomes are unknown, is below its objective, or below one half "
            "where it has none; or its latest ten runs failed, whatever it did before. The score "
            "says nothing about this: an agent that fails every time in the same way is perfectly "
            "stable."
        ),
        [
            _LOOK,
            "*Runs that fail* on the agent's page: the latest traces, and the step each ended at.",
            "The model's and the tools' own health, and your deploys: what happened just before?",
        ],
        [
            "Open three of the failed traces, and begin with what they have in common.",
            "If a deploy did it, take it back.",
        ],
    ),
    Alert(
        "AgentErrorBudgetBurnsFast",
        "critical",
        objectives.FAST,
        1,
        "2m",
        f"{AGENT} burns its error budget",
        "Its runs fail {{ .Value }} times as often as this alert allows.",
        (
            "The agent used up 2 % of the error budget of its objective's whole period within the "
            "last hour, or 5 % within six, and still does. At this rate the budget of 30 days is "
            "gone in two to five days. At least ten runs stand behind it; where eight of ten runs "
            "fail it fires for every objective below that."
        ),
        [
            _LOOK,
            "*Error budget left*: since when does it fall?",
            "*Runs that fail* on the agent's page, and your deploys: what happened just before?",
        ],
        [
            "Open three of the failed traces, and begin with what they have in common.",
            "If a deploy did it, take it back.",
        ],
        unit="humanize",
    ),
    Alert(
        "AgentErrorBudgetBurnsSlowly",
        "warning",
        objectives.SLOW,
        1,
        "15m",
        f"{AGENT} will use up its error budget",
        "Its runs fail {{ .Value }} times as often as this alert allows.",
        (
            "The agent used up a tenth of the error budget of its objective's whole period within "
            "the last day, or within three, and still does. Nothing is on fire, but the objective "
            "will be missed."
        ),
        [
            _LOOK,
            "*Error budget left*: a slope, or a step?",
            "*Runs that fail* and *Tasks that succeed only sometimes* on the agent's page.",
        ],
        [
            "Fix what fails most, before anything that adds risk.",
            "If the task allows no better: change the objective (`objectives`), and say so.",
        ],
        unit="humanize",
    ),
    Alert(
        "AgentErrors",
        "warning",
        f"{one(metric('error_rate'))} and on ({BY}) {HAS_RUNS} and on ({WHO}) {ran('1h')}",
        0.1,
        "10m",
        f"Runs of {AGENT} end in errors",
        "{{ .Value }} of the runs in its window ended in an error.",
        (
            "More than one in ten runs ended with an error of the agent itself. It needs no "
            "label, because an error is seen; a failed tool call that the agent handled is none."
        ),
        [
            _LOOK,
            "*Runs that fail* on the agent's page: which error, after which step?",
        ],
        [
            (
                "Handle the error where it is raised: a retry with a bound, another tool, or an "
                "answer that says what could not be done."
            ),
        ],
        unit="humanizePercentage",
    ),
    Alert(
        "AgentSuccessLow",
        "warning",
        (
            f"(1 - {one(metric('success_rate'))}) and on ({BY}) {HAS_RUNS} and on ({WHO}) "
            f"{ran('1h')} and on ({WHO}) {_KNOWN}"
        ),
        0.3,
        "10m",
        f"Many runs of {AGENT} fail",
        "{{ .Value }} of the runs with a known outcome in its window failed.",
        (
            "More than three in ten of the agent's runs with a known outcome did not succeed. It "
            "may still be stable: it then fails in the same way each time. *AgentFailing* says "
            "that it misses its objective, fails more often than it succeeds, or has failed ten "
            "times in a row."
        ),
        [
            _LOOK,
            "*Runs that fail* on the agent's page: which tasks, and after which step?",
            "*Success rate and error rate*: since when?",
        ],
        [
            "Begin with what the failed runs have in common: a tool, a task, an error.",
            "If a deploy did it, take it back.",
            "If this is what the task allows: raise the limit for this agent.",
        ],
        unit="humanizePercentage",
    ),
    Alert(
        "AgentTierFell",
        "warning",
        f"({_rank(' offset 1h')} - {_rank()}) and on ({BY}) {HAS_RUNS} and on ({WHO}) {ran('1h')}",
        0,
        "10m",
        f"The reliability tier of {AGENT} fell",
        "It stands {{ .Value }} tier(s) lower than an hour ago.",
        (
            "The agent's score crossed the border of a tier within the last hour and has "
            "stayed below for ten minutes. The alert ends by itself an hour after the fall: "
            "it reports the fall, not the level."
        ),
        [
            _LOOK,
            "*The score, and what each part takes from it*: which layer grew?",
            (
                "The dashboards' lines for changes of behaviour, and your deploys: what "
                "happened just before?"
            ),
        ],
        [
            "Follow the part that grew: its panel says what to do.",
            (
                "If a deploy did it, take it back, and compare the two with "
                "`otel-reliability report --baseline`."
            ),
        ],
    ),
    Alert(
        "AgentRetryExplosion",
        "warning",
        (
            f"{one(metric('retry_explosion_share'))} and on ({BY}) {HAS_RUNS} and on ({WHO}) "
            f"({_EXPLODED})"
        ),
        0.05,
        "5m",
        f"{AGENT} retries failing calls again and again",
        "{{ .Value }} of the runs in its window retried one failing call three times or more.",
        (
            "More than one in twenty of the agent's runs hammer at a call that fails, and at "
            "least one did so within the last hour. This costs money and time, and loads a "
            "tool that is in trouble already."
        ),
        [
            _LOOK,
            "*Failed tool calls per minute* and *Retries per minute*: which tool?",
            "That tool's own health: it often fails for everybody.",
        ],
        [
            "Fix the tool, or switch it off for the agent.",
            (
                "Bound retries in code, and let the tool's error say whether a further "
                "attempt can succeed."
            ),
        ],
        unit="humanizePercentage",
    ),
    Alert(
        "AgentTokenPressure",
        "warning",
        (
            f"{one(metric('token_budget_pressure'))} and on ({BY}) {HAS_RUNS} and on ({WHO}) "
            f"{ran('1h')}"
        ),
        0.8,
        "15m",
        f"{AGENT} works near the limit of its context",
        "On average {{ .Value }} of its model's context is taken.",
        (
            "Averaged over the runs of the window, the fullest call of a run takes more than "
            "80 % of what the model can hold. Runs above the average get truncated, and "
            "forget their first instructions."
        ),
        [
            _LOOK,
            "*Token pressure against the limit*: is it all runs, or the upper end only?",
            (
                "A trace of a run at the top: what fills it: tool results, the conversation, "
                "the prompt?"
            ),
        ],
        [
            "Shorten tool results before they go to the model.",
            "Summarise long conversations.",
            "Take a model with a larger window.",
        ],
        unit="humanizePercentage",
    ),
    Alert(
        "AgentRunExceedsBound",
        "warning",
        f"max by ({WHO}, kind) ({sample_of(names.OPEN_RUN_USAGE)})",
        1,
        "0m",
        f"A run of {AGENT} exceeds its bound while it runs",
        "Its {{ .Labels.kind }} is {{ .Value }} times the bound.",
        (
            "An open run exceeds a bound that you set in `watch` (from the first run on), or "
            "uses more than twice the maximum of its agent's window (from 50 runs on, and "
            "above the least values in *How runs are rebuilt*). It may go on, and cost more, "
            "until it is stopped. Set `watch.cost` or `watch.tokens` if the agent is new. "
            "Workers on Kafka never raise this alert."
        ),
        [
            (
                "The log event `agent_reliability.run_excess` names the run: its trace shows "
                "what it does."
            ),
            "`failing_streak` and `repeats`: which call does it make again and again?",
        ],
        [
            "Stop the run if it does no good: this package never does.",
            (
                "In process, `on_excess` lets the host stop it. If such runs are common "
                "work, raise the bound (`watch`)."
            ),
        ],
        unit="humanize",
    ),
    Alert(
        "AgentSessionsAtRisk",
        "warning",
        f"(({_RISKY} / ({_CLOSED} >= 5)) and on ({WHO}) ({_RISKY} >= 2))",
        0.2,
        "0m",
        f"Many sessions of {AGENT} went badly",
        (
            "{{ .Value }} of the sessions that closed in the last six hours have a "
            "reliability of at most 0.5."
        ),
        (
            "More than a fifth of the sessions closed in the last six hours, and at least "
            "two of five, had runs that failed gravely: users met them one after the other."
        ),
        [
            _LOOK,
            "*Reliability and consistency of sessions*: since when?",
            "The flagged traces of the worst sessions, and the signal that set their risk.",
        ],
        [
            (
                "Fix what that signal stands for: confidence, loops, wrong tools or "
                "incoherent answers."
            ),
            "Inform the users concerned.",
        ],
        unit="humanizePercentage",
    ),
    Alert(
        "AgentBehaviourChanged",
        "info",
        (
            f"(sum by ({WHO}, signal) (increase({_CHANGES}[1h])) > 0) or "
            f"max_over_time(({_FIRST_CHANGE})[1h:1m])"
        ),
        0,
        "0m",
        f"The behaviour of {AGENT} changed",
        "Its runs differ from before: the signal {{ .Labels.signal }} shows it most clearly.",
        (
            "Compared with the runs before, the agent's runs differ by more than chance. "
            "False alarms come at most once in as many runs as `change.runs_per_false_alarm` "
            "says (10 000 unless set): expect the runs of a day divided by it, each day. Of "
            "1 000 agents with 100 runs a day each that makes ten. It says *changed*, not "
            "*worse*; and an agent that gets other tasks has changed too."
        ),
        [
            (
                "The dashboard *Agent*, *Evidence for a change*: which signals, and since "
                "when did they rise?"
            ),
            "`otel-reliability change` on recordings of before and after says it in a sentence.",
        ],
        [
            "If you changed something: is this what you wanted?",
            (
                "If you did not: ask after the model's release, the tools, the prompts' "
                "store, and who your users are now."
            ),
        ],
    ),
    Alert(
        "AgentWithoutRuns",
        "warning",
        (
            f"(time() - {greatest(LAST_RUN)}) and on ({WHO}) (sum by ({WHO}) "
            f"(increase({RUNS_TOTAL}[1d] offset 1h)) >= 100)"
        ),
        3600,
        "5m",
        f"No run of {AGENT} for a while",
        "Its latest run ended {{ .Value }} ago; in the day before it had at least a hundred.",
        (
            "An agent that runs often has had no run for more than an hour. Its numbers "
            "stand still meanwhile, and look healthy."
        ),
        [
            "Is the agent called at all? Check the traffic of its service.",
            (
                "Do its spans arrive? A run whose root span never ends stays open "
                "(`otel_reliability_runs_open`)."
            ),
        ],
        [
            "Start the agent, or its exporter.",
            (
                "If it was taken away: its series end by themselves after a day "
                "(`limits.agent_idle`). If it rests at night: silence this alert for it then."
            ),
        ],
        unit="humanizeDuration",
    ),
    Alert(
        "ReliabilityTelemetryLost",
        "warning",
        f"{_LOST} / ({_RECEIVED} >= 1000)",
        0.01,
        "5m",
        "Spans are lost on the way into the numbers",
        "{{ .Value }} of the spans of the last fifteen minutes were late, refused or malformed.",
        (
            "More than one span in a hundred did not get into the numbers. Runs are counted "
            "without them, or not at all: the numbers rest on the others."
        ),
        [
            "The row *Service* of the dashboard *Fleet*: *Lost spans per minute*.",
            "*Fullest limits*: which limit was reached?",
        ],
        [
            "late: send sooner, or raise `assembly.idle_timeout`.",
            "refused: raise the limit of that name, or add an instance.",
            "malformed: fix the sender; the log says which ids or times cannot be.",
        ],
        board="self",
        unit="humanizePercentage",
    ),
    Alert(
        "ReliabilityRequestsRefused",
        "warning",
        f"{_TURNED_AWAY} / ({_ASKED} >= 20)",
        0.05,
        "10m",
        "The service turns requests away",
        "{{ .Value }} of the requests of the last fifteen minutes were not taken.",
        (
            "More than one request in twenty gets no. Clients send again what was refused "
            "for want of room; what is refused for another reason is lost."
        ),
        [
            "The row *Service* of the dashboard *Fleet*: *Requests per minute* by outcome.",
            "`/readyz` of the instance.",
        ],
        [
            "unavailable: add an instance, routed by agent, or give more memory and processor.",
            "unauthenticated: fix the client's token.",
            "invalid or too large: the client's log says more.",
        ],
        board="self",
        unit="humanizePercentage",
    ),
    Alert(
        "ReliabilityExportFailing",
        "warning",
        f"{_UNSENT} / ({_SENT} >= 5)",
        0.5,
        "10m",
        "What the service sends does not arrive",
        "{{ .Value }} of the sendings of {{ .Labels.sink }} in the last fifteen minutes failed.",
        (
            "Most pushes to the receiver named in the settings fail. The next push that "
            "arrives has all of them."
        ),
        [
            (
                "The metric `otel_reliability_exports_total` by sink and outcome, and the "
                "service's log."
            ),
            "The receiver: is it up, and does it take OTLP at that address?",
        ],
        ["Fix the receiver or the address (`service.push`)."],
        board="self",
        unit="humanizePercentage",
    ),
    Alert(
        "ReliabilityLimitReached",
        "warning",
        f"sum by (job, limit) (increase({sample_of(names.LIMIT_HITS)}[15m]))",
        0,
        "5m",
        "A limit is reached: {{ .Labels.limit }}",
        "{{ .Value }} items found no place below it in the last fifteen minutes.",
        (
            "Everything is bounded, so that a flood harms no agent; what exceeds a limit is "
            "dropped and counted. The numbers do without it."
        ),
        ["The row *Service* of the dashboard *Fleet*: *Fullest limits*."],
        [
            "agents, tools, tasks: does a name hold an id? Rename or redact it.",
            "Others: raise the limit of that name, give more memory, or add an instance.",
        ],
        board="self",
        unit="humanize",
    ),
    Alert(
        "ReliabilityServiceDown",
        "critical",
        f"count by (job) (last_over_time({READY}[6h])) unless on (job) count by (job) ({READY})",
        0,
        "5m",
        "The reliability service is gone",
        "Its metrics were there within the last six hours, and are not now.",
        (
            "No instance of the service reports metrics: it is down, or is not scraped. "
            "Clients with a queue of their own keep what they have for a while."
        ),
        [
            "The scraper's list of targets: what does it say?",
            "The service's log, and whether something ended it (memory?).",
        ],
        [
            "Start it. With a state directory it goes on where it was.",
            "If you took it away: the alert ends by itself after six hours, or silence it.",
        ],
        board="self",
    ),
    Alert(
        "ReliabilityInstanceDown",
        "warning",
        (
            f"(quantile_over_time(0.5, (count by (job) ({READY}))[6h:5m]) - "
            f"count by (job) ({READY}))"
        ),
        0.9,
        "10m",
        "An instance of the reliability service is gone",
        "{{ .Value }} instance(s) fewer report metrics than for most of the last six hours.",
        (
            "The service has several instances, and fewer of them are there than usual. What the "
            "missing one held is not measured until it is back, or until its agents are routed to "
            "another. (None left at all: *ReliabilityServiceDown*.)"
        ),
        [
            "The scraper's list of targets: which is missing, and why?",
            "The log of that instance, and whether something ended it (memory?).",
        ],
        [
            "Start it. With a state directory it goes on where it was.",
            "If you scaled down on purpose: the alert ends by itself after three hours.",
        ],
        board="self",
        unit="humanize",
    ),
    Alert(
        "ReliabilityServiceNotReady",
        "critical",
        f"1 - {READY}",
        0,
        "5m",
        "The reliability service takes no requests",
        "{{ .Labels.instance }} has refused requests for five minutes.",
        (
            "The process lives but cannot accept requests: it loads state, is out of memory, "
            "or cannot write its state."
        ),
        [
            "`/readyz` of the instance says which: `recovering`, `memory`, `state`, `stopping`.",
            "Its log.",
        ],
        [
            "recovering: wait until its state is loaded.",
            "memory: give it more, or lower `limits`.",
            "state: is the disk full or read-only, or `state_limit` reached?",
        ],
        board="self",
    ),
    Alert(
        "ReliabilityKafkaLagging",
        "warning",
        f"{_LAG} > {_LAG_BEFORE} or {_LAG} unless {_LAG_BEFORE}",
        1000,
        "15m",
        "Workers on Kafka fall behind: {{ .Labels.topic }}",
        "{{ .Value }} messages of it are not read yet, more than a quarter of an hour ago.",
        (
            "Messages come faster than the workers of that stage read them. Nothing is lost "
            "while the topic keeps what they have not read, but numbers are late."
        ),
        [
            "The metric `otel_reliability_kafka_lag` by partition: of all partitions or of one?",
            "`/readyz` and the log of the workers.",
        ],
        [
            "All partitions: start more workers, up to the number of partitions.",
            (
                "One partition: a hot agent (`agent_key` should separate its versions or "
                "tenants), or a worker that is slow."
            ),
            "Is the retention of the topic longer than the time behind? Raise it now.",
        ],
        board="self",
        unit="humanize",
    ),
    Alert(
        "ReliabilityKafkaDeadLetters",
        "warning",
        f"sum by (job, reason) (increase({_DEAD}[15m]) > 0 or {_DEAD} unless {_DEAD} offset 15m)",
        0,
        "0m",
        "Messages on Kafka cannot be used: {{ .Labels.reason }}",
        "{{ .Value }} of them came in the last fifteen minutes.",
        (
            "Something writes messages to a topic of the workers that are no spans, no log "
            "events or no records of runs. They are laid aside, and the partition goes on "
            "without them."
        ),
        [
            (
                "The topic of dead letters (`kafka.dead_letters`): headers say why, and "
                "where each came from."
            ),
            "The metric `otel_reliability_kafka_dead_letters_total` by reason.",
        ],
        [
            "undecodable, run_record: fix or stop what writes there.",
            "fault: an error of ours; the log says where, report it, please.",
        ],
        board="self",
        unit="humanize",
    ),
)
"""In the order of the runbook: agents first, then ourselves."""
