"""The row of *Fleet* on the service itself: whether the numbers can be trusted."""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About
from dashboards.board import Section
from dashboards.panels import Query
from dashboards.promql import increase, sample_of
from otel_reliability.telemetry import names

SPANS: Final = increase(names.SPANS, 'disposition=~"late|refused|malformed"', "$__range")
RECEIVED: Final = increase(names.SPANS, 'disposition="received"', "$__range")
LOST: Final = increase(names.SPANS, 'disposition=~"late|refused|malformed"')
REQUESTS: Final = increase(names.REQUESTS)


def row() -> Section:
    """The state of the service, lost spans, limits and requests."""
    return Section(
        "Service",
        [
            panels.number(
                "Ready instances",
                About(
                    "Instances that accept requests now, and those that do not.",
                    "All of them are ready.",
                    (
                        "`/readyz` of the instance says why not: recovering, memory, state "
                        "or stopping."
                    ),
                    "No service reports metrics: is it scraped?",
                ),
                Query(f"count({sample_of(names.READY)} == 1) or vector(0)", "ready"),
                Query(f"count({sample_of(names.READY)} == 0) or vector(0)", "not ready"),
                text="value_and_name",
                line=False,
                size=(8, 4),
            ),
            panels.number(
                "Lost spans",
                About(
                    (
                        "The share of the spans received in the time shown that were too "
                        "late, refused or malformed."
                    ),
                    "0.",
                    "See the reasons below.",
                    "No span in this time",
                ),
                Query(f"(sum({SPANS}) or vector(0)) / (sum({RECEIVED}) > 0)"),
                unit="percentunit",
                colours=((None, "green"), (0.001, "yellow"), (0.01, "red")),
                size=(8, 4),
            ),
            panels.number(
                "Fullest limits",
                About(
                    (
                        "The three limits that are used most. At 100 % something is dropped, "
                        "and counted."
                    ),
                    "Below 80 %.",
                    "Raise that limit, or give the service more memory.",
                    "No limit is reported",
                ),
                Query(
                    (
                        f"topk(3, max by (limit) ({sample_of(names.LIMIT_USED)} / "
                        f"({sample_of(names.LIMIT_VALUE)} > 0)))"
                    ),
                    "{{limit}}",
                ),
                unit="percentunit",
                colours=((None, "green"), (0.8, "yellow"), (0.95, "red")),
                text="value_and_name",
                size=(8, 4),
            ),
            panels.over_time(
                "Lost spans by reason",
                About(
                    "Spans that came too late, were refused or could not be read, by reason.",
                    "None.",
                    (
                        "late: raise assembly.idle_timeout or send sooner. refused: a limit "
                        "was reached. malformed: fix the sender."
                    ),
                    "None in this time",
                ),
                Query(f"sum by (disposition, reason) ({LOST})", "{{disposition}} {{reason}}"),
                bars=True,
                stacked=True,
            ),
            panels.over_time(
                "Requests",
                About(
                    "Requests by outcome.",
                    "All accepted.",
                    (
                        "unavailable: more load than one instance takes. unauthenticated: "
                        "check the token. Others: fix the client."
                    ),
                    "No request in this time",
                ),
                Query(
                    f"sum by (signal, transport, outcome) ({REQUESTS})",
                    "{{signal}} {{transport}} {{outcome}}",
                ),
                bars=True,
                stacked=True,
            ),
        ],
    )
