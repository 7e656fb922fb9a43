"""Is it well, what came, and what became of it?"""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About
from dashboards.board import Section
from dashboards.own.common import HERE, NOTHING, came, now
from dashboards.panels import Query
from dashboards.promql import increase, sample_of
from otel_reliability.telemetry import names

LOST: Final = 'disposition=~"late|refused|malformed"'


RECEIVED: Final = 'disposition="received"'


def well() -> Section:
    """A line of numbers that says whether to read on."""
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


def coming() -> Section:
    """Spans, requests, records; and what was lost of them."""
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
