"""What is made of it, what is kept, and what goes out."""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About
from dashboards.board import Section
from dashboards.own.common import HERE, NOTHING, came, now
from dashboards.panels import Column, Query
from dashboards.promql import sample_of
from otel_reliability.telemetry import names

STATE: Final = 'ceiling="state_bytes"'
"""The ceiling that tells how large the journal is."""


QUEUE: Final = 'ceiling="queue_bytes"'


def runs() -> Section:
    """Runs by what closed them, and those that are not whole."""
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


def ceilings() -> Section:
    """Every bound, how near it is, and what it has turned away."""
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


def outgoing() -> Section:
    """Sendings, and the journal."""
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
