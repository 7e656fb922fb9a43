"""Self: whether the numbers can be trusted: what was received, used, late and refused, and how near each ceiling is."""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About
from dashboards.board import Board, Section, choice, way
from dashboards.panels import Column, Query
from dashboards.promql import increase, sample_of
from otel_reliability.telemetry import names
from otel_reliability.telemetry.names import Instrument

HERE: Final = 'instance=~"$instance"'
LOST: Final = 'disposition=~"late|refused|malformed"'
RECEIVED: Final = 'disposition="received"'
STATE: Final = 'ceiling="state_bytes"'
"""The ceiling that tells how large the journal is."""
QUEUE: Final = 'ceiling="queue_bytes"'
NOTHING: Final = "None in this time"


def now(spec: Instrument, selector: str = "", by: str = "") -> str:
    """The value now, over the instances chosen."""
    told = f"{HERE},{selector}" if selector else HERE
    return f"sum{f' by ({by})' if by else ''} ({sample_of(spec)}{{{told}}})"


def came(spec: Instrument, by: str = "", selector: str = "", over: str = "$__rate_interval") -> str:
    """What came in each interval."""
    told = f"{HERE},{selector}" if selector else HERE
    return f"sum{f' by ({by})' if by else ''} ({increase(spec, told, over)})"


def _well() -> Section:
    return Section(
        "Is it well?",
        [
            panels.number(
                "Takes requests",
                About(
                    "Instances that take requests now, and those that do not.",
                    "All of them.",
                    "`/readyz` of the instance says why not: recovering, memory, journal or stopping.",
                    "No service tells of itself: is it scraped?",
                ),
                Query(f"count({sample_of(names.READY)}{{{HERE}}} == 1) or vector(0)", "ready"),
                Query(f"count({sample_of(names.READY)}{{{HERE}}} == 0) or vector(0)", "not ready"),
                text="value_and_name",
                line=False,
                size=(5, 4),
            ),
            panels.number(
                "Lost spans",
                About(
                    "The share of the spans received in the time shown that were too late, refused or malformed.",
                    "0.",
                    "See by reason below.",
                    "No span in this time",
                ),
                Query(
                    f"({came(names.SPANS, selector=LOST, over='$__range')} or vector(0)) / ({came(names.SPANS, selector=RECEIVED, over='$__range')} > 0)"
                ),
                unit="percentunit",
                colours=((None, "green"), (0.001, "yellow"), (0.01, "red")),
                size=(3, 4),
            ),
            panels.number(
                "Nearest ceiling",
                About(
                    "How full the fullest bounded store is. At 100 % something is let go, and counted.",
                    "Below 80 %.",
                    "See *Ceilings* for which; raise that limit, or give the service more memory.",
                    "No ceiling is told",
                ),
                Query(
                    f"max({sample_of(names.CEILING_USED)}{{{HERE}}} / ({sample_of(names.CEILING_LIMIT)}{{{HERE}}} > 0))"
                ),
                unit="percentunit",
                colours=((None, "green"), (0.8, "yellow"), (0.95, "red")),
                size=(3, 4),
            ),
            panels.number(
                "Agents",
                About(
                    "Agents that have runs in their windows.",
                    "As many as you run.",
                    "Far more: does a name hold an id? Rename or redact it.",
                    "No agent has any run",
                ),
                Query(now(names.AGENTS)),
                decimals=0,
                size=(3, 4),
            ),
            panels.number(
                "Sessions",
                About(
                    "Sessions that are remembered, open or closed.",
                    "As many as your users have.",
                    "None: do spans carry gen_ai.conversation.id?",
                    "No session",
                ),
                Query(now(names.SESSIONS, by="state"), "{{state}}"),
                decimals=0,
                line=False,
                size=(4, 4),
            ),
            panels.number(
                "Lag",
                About(
                    "Time between the end of the latest span and its receipt.",
                    "Seconds.",
                    "Minutes: a Collector has a queue, or a clock is wrong.",
                    "No span has come",
                ),
                Query(f"max({sample_of(names.EVENT_LAG)}{{{HERE}}})"),
                unit="s",
                size=(3, 4),
            ),
            panels.number(
                "Faults",
                About(
                    "Errors of this package, kept from the host, in the time shown.",
                    "0.",
                    "The log says what: report it, please.",
                    "No fault has ever been counted",
                ),
                Query(f"(sum({increase(names.FAULTS, HERE, '$__range')}) or 0 * {now(names.AGENTS)})"),
                colours=panels.ANY_IS_BAD,
                decimals=0,
                size=(3, 4),
            ),
        ],
    )


def _came() -> Section:
    return Section(
        "What came, and what became of it",
        [
            panels.over_time(
                "Spans",
                About(
                    "Spans in each interval: received, and of these used, other (no agent's), duplicate, late, refused or malformed.",
                    "Used near received, if nothing but agents sends here.",
                    "Nearly all other: is the convention of your spans recognised? `otel-reliability inspect` tells.",
                    "No span in this time",
                ),
                Query(came(names.SPANS, "disposition"), "{{disposition}}"),
                colours={
                    "received": "blue",
                    "used": "green",
                    "late": "orange",
                    "refused": "red",
                    "malformed": "purple",
                },
            ),
            panels.over_time(
                "Spans lost, and why",
                About(
                    "Spans that came too late, were refused or could not be read, by reason.",
                    "None.",
                    "late: raise assembly.idle_timeout or send sooner. refused: a ceiling, see below. malformed: the sender is at fault.",
                    NOTHING,
                ),
                Query(came(names.SPANS, "disposition, reason", LOST), "{{disposition}} {{reason}}"),
                bars=True,
                stacked=True,
            ),
            panels.over_time(
                "Requests",
                About(
                    "Requests by what became of them.",
                    "All accepted.",
                    "unavailable: no room, more load than one instance takes. unauthenticated: a token. Anything else: the client is at fault.",
                    "No request in this time",
                ),
                Query(came(names.REQUESTS, "signal, transport, outcome"), "{{signal}} {{transport}} {{outcome}}"),
                bars=True,
                stacked=True,
            ),
            panels.over_time(
                "Log records and records of runs",
                About(
                    "Log records by kind (evaluations, runs of other services), and what became of told runs.",
                    "Evaluations, if something judges your agents.",
                    "malformed: the sender is at fault.",
                    "No log record in this time",
                ),
                Query(came(names.LOG_RECORDS, "disposition, reason"), "{{disposition}} {{reason}}"),
                Query(came(names.RUN_RECORDS, "disposition"), "run {{disposition}}"),
                bars=True,
                stacked=True,
            ),
            panels.over_time(
                "Evidence refused",
                About(
                    "Evidence on spans that could not stand, by attribute and reason.",
                    "None.",
                    "Correct what writes that attribute: docs/conventions tells what it may hold.",
                    NOTHING,
                ),
                Query(came(names.EVIDENCE_REFUSED, "attribute, reason"), "{{attribute}}: {{reason}}"),
                bars=True,
                stacked=True,
                size=(8, 7),
            ),
            panels.over_time(
                "Evaluations refused",
                About(
                    "Judgements that joined no run, by reason.",
                    "None.",
                    "late: judge sooner, or raise assembly.remember. Others: do they carry the ids of the run's trace and span?",
                    NOTHING,
                ),
                Query(came(names.EVALUATIONS_REFUSED, "reason"), "{{reason}}"),
                bars=True,
                stacked=True,
                size=(8, 7),
            ),
            panels.over_time(
                "Requests that wait",
                About(
                    "Requests that wait to be committed.",
                    "Near 0.",
                    "Growing: the disk or the processor is too slow.",
                    "No service tells of itself",
                ),
                Query(now(names.REQUESTS_WAITING), "waiting"),
                size=(8, 7),
            ),
        ],
    )


def _runs() -> Section:
    return Section(
        "From spans to runs",
        [
            panels.over_time(
                "Runs closed, and why",
                About(
                    "Runs in each interval, by what closed them.",
                    "Nearly all by their root.",
                    "idle or timeout: roots do not arrive. A limit: raise it, see *Ceilings*.",
                    "No run was closed in this time",
                ),
                Query(came(names.CLOSED_RUNS, "reason"), "{{reason}}"),
                bars=True,
                stacked=True,
                size=(8, 8),
            ),
            panels.over_time(
                "Where outcomes come from",
                About(
                    "Runs in each interval by what told whether they succeeded.",
                    "An explicit outcome or an evaluation.",
                    "status or none: record reliability.run.success.",
                    "No run was recorded in this time",
                ),
                Query(came(names.SELF_RUNS, "outcome_source"), "{{outcome_source}}"),
                bars=True,
                stacked=True,
                size=(8, 8),
            ),
            panels.over_time(
                "Open runs",
                About(
                    "Runs that are not closed yet.",
                    "About as many as are at work.",
                    "Growing without end: roots do not arrive.",
                    "No service tells of itself",
                ),
                Query(now(names.OPEN_RUNS), "open"),
                size=(8, 8),
            ),
            panels.over_time(
                "Runs not whole",
                About(
                    "Runs that closed without their root (incomplete), that late spans changed (revised), that came too late for a window (late), or that ended in the future (clamped).",
                    "Few.",
                    "incomplete: is a sampler before us? late: a Collector's queue. clamped: a clock is wrong.",
                    NOTHING,
                ),
                Query(came(names.INCOMPLETE_RUNS), "incomplete"),
                Query(came(names.REVISED_RUNS), "revised"),
                Query(came(names.LATE_RUNS), "late"),
                Query(came(names.CLAMPED_RUNS), "clamped"),
                bars=True,
                stacked=True,
                size=(16, 7),
            ),
            panels.over_time(
                "Agents let go of",
                About(
                    "Agents without a run for so long that their series ended.",
                    "Only those that you took away.",
                    "See the alert on agents without runs.",
                    NOTHING,
                ),
                Query(came(names.EXPIRED_AGENTS), "agents"),
                bars=True,
                size=(8, 7),
            ),
        ],
    )


def _ceilings() -> Section:
    used, limit = sample_of(names.CEILING_USED), sample_of(names.CEILING_LIMIT)
    return Section(
        "Ceilings",
        [
            panels.listing(
                "Every ceiling",
                About(
                    "Everything that is bounded: how much is taken, where the limit is, and what found no place.",
                    "Below 80 %, and nothing that found no place.",
                    "Raise the limit of that name (docs/configuration), or give the service more memory.",
                    "No ceiling is told",
                ),
                [
                    Query(f"sum by (ceiling) ({used}{{{HERE}}})"),
                    Query(f"sum by (ceiling) ({limit}{{{HERE}}})"),
                    Query(f"sum by (ceiling) ({used}{{{HERE}}}) / (sum by (ceiling) ({limit}{{{HERE}}}) > 0)"),
                    Query(came(names.CEILING_HITS, "ceiling", over="$__range")),
                ],
                [
                    Column("ceiling", "Ceiling"),
                    Column("Value #A", "Taken", panels.unit_of("short")),
                    Column("Value #B", "Limit", panels.unit_of("short")),
                    Column(
                        "Value #C",
                        "Full",
                        [
                            *panels.unit_of("percentunit", 1),
                            *panels.coloured(((None, "green"), (0.8, "yellow"), (0.95, "red")), "color-background"),
                        ],
                    ),
                    Column(
                        "Value #D", "Found no place", [*panels.unit_of("short", 0), *panels.coloured(panels.ANY_IS_BAD)]
                    ),
                ],
                sort=("Full", True),
                size=(12, 12),
            ),
            panels.over_time(
                "How full",
                About(
                    "Each ceiling over time.",
                    "Below 80 %.",
                    "Raise the limit of that name, or give the service more memory.",
                    "No ceiling is told",
                ),
                Query(f"max by (ceiling) ({used}{{{HERE}}} / ({limit}{{{HERE}}} > 0)) > 0", "{{ceiling}}"),
                unit="percentunit",
                limits=(0, 1),
                lines=((None, "green"), (0.8, "yellow"), (0.95, "red")),
                size=(12, 6),
            ),
            panels.over_time(
                "The queue",
                About(
                    "How full the queue is: in bytes in a service, in spans in a host's process.",
                    "Near 0.",
                    "Growing: more load than this instance takes. Add one, routed by agent.",
                    "No queue is told",
                ),
                Query(
                    f"max({sample_of(names.QUEUE_LENGTH)}{{{HERE}}} / ({sample_of(names.QUEUE_CAPACITY)}{{{HERE}}} > 0) or {used}{{{HERE},{QUEUE}}} / {limit}{{{HERE},{QUEUE}}})",
                    "queue",
                ),
                unit="percentunit",
                limits=(0, 1),
                size=(12, 6),
            ),
        ],
    )


def _out() -> Section:
    return Section(
        "What goes out, and what is kept",
        [
            panels.over_time(
                "Exports",
                About(
                    "Sendings by what they carry (metrics, runs, changes) and what became of them.",
                    "All accepted.",
                    "Is the receiver up, and does it take OTLP at that address? The log says more.",
                    "Nothing is sent: no push is set up",
                ),
                Query(came(names.EXPORTS, "sink, outcome"), "{{sink}} {{outcome}}"),
                bars=True,
                stacked=True,
                size=(8, 8),
            ),
            panels.over_time(
                "How long collecting and sending take",
                About(
                    "Seconds of the last collection, and of the last sending of each kind.",
                    "Well below the interval.",
                    "Long: fewer agents an instance, or a longer interval.",
                    "No service tells of itself",
                ),
                Query(f"max({sample_of(names.COLLECT_DURATION)}{{{HERE}}})", "collect"),
                Query(f"max by (sink) ({sample_of(names.EXPORT_DURATION)}{{{HERE}}})", "{{sink}}"),
                unit="s",
                size=(8, 8),
            ),
            panels.over_time(
                "The journal",
                About(
                    "How large the journal in the state directory is, against its limit. Refused: requests turned away because nothing could be kept.",
                    "Well below its limit; nothing refused.",
                    "The disk is full or slow: make room, or raise service.state_limit.",
                    "No journal: the service keeps its state in memory only",
                ),
                Query(now(names.CEILING_USED, STATE), "size"),
                Query(now(names.CEILING_LIMIT, STATE), "limit"),
                unit="bytes",
                colours={"limit": "red"},
                size=(8, 8),
            ),
        ],
    )


def board() -> Board:
    """The dashboard."""
    return Board(
        "self",
        "Agents: Self",
        "Whether the numbers can be trusted: what came, what was lost and why, and how near each ceiling is.",
        [_well(), _came(), _runs(), _ceilings(), _out()],
        [
            choice(
                "instance",
                "Instance",
                f"label_values({sample_of(names.AGENTS)}, instance)",
                "Instances of the service, or processes with our span processor.",
            )
        ],
        (),
        [way("Fleet", "fleet", variables=False)],
    )
