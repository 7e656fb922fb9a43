"""The rows of *Fleet* on the service itself: whether the numbers can be trusted."""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About
from dashboards.board import Section
from dashboards.panels import Placed, Query
from dashboards.promql import increase, rate, sample_of
from otel_reliability.telemetry import names

QUARTER: Final = "15m"
READY: Final = sample_of(names.READY)
SPANS: Final = increase(names.SPANS, 'disposition=~"late|refused|malformed"', QUARTER)
RECEIVED: Final = increase(names.SPANS, 'disposition="received"', QUARTER)
LOST: Final = rate(names.SPANS, 'disposition=~"late|refused|malformed"')


def ready(size: tuple[int, int]) -> Placed:
    """Whether anything measures at all."""
    return panels.number(
        "Ready instances",
        About(
            "Instances of the service that accept requests now, of those of the last six hours.",
            "All of them are ready.",
            (
                "`/readyz` of an instance says why it is not: recovering, memory, state or "
                "stopping. None at all: is the service running, and is it scraped?"
            ),
            "None: the service reports no metrics",
        ),
        Query(f"count({READY} == 1) or vector(0)", "ready"),
        Query(f"count(last_over_time({READY}[6h]))", "in 6 h"),
        text="value_and_name",
        unit="none",
        colours=((None, "red"), (1, "green")),
        named={"in 6 h": "text"},
        decimals=0,
        size=size,
    )


def row() -> Section:
    """Lost spans, limits, requests, and how late everything is."""
    return Section(
        "Service",
        [
            panels.number(
                "Lost spans",
                About(
                    (
                        "The share of the spans received in the last quarter of an hour that "
                        "were too late, refused or malformed."
                    ),
                    "0.",
                    "See the reasons below.",
                    "No span in the last quarter of an hour",
                ),
                Query(
                    f"(sum({SPANS}) or vector(0)) / (sum({RECEIVED}) > 0) "
                    f"and on () (count({READY}) > 0)"
                ),
                unit="percentunit",
                colours=((None, "text"), (0, "green"), (0.001, "yellow"), (0.01, "red")),
                size=(6, 4),
            ),
            panels.number(
                "Longest lag",
                About(
                    "Time between the end of the last span received and its receipt.",
                    "A few seconds.",
                    "Check the queues of exporters and Collectors before the service.",
                    "No span received",
                ),
                Query(f"max({sample_of(names.EVENT_LAG)})"),
                unit="s",
                size=(6, 4),
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
                colours=((None, "text"), (0, "green"), (0.8, "yellow"), (0.95, "red")),
                text="value_and_name",
                size=(12, 4),
            ),
            panels.over_time(
                "Lost spans per minute, by reason",
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
                unit="none",
                stacked=True,
            ),
            panels.over_time(
                "Requests per minute",
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
                    f"sum by (signal, transport, outcome) ({rate(names.REQUESTS)})",
                    "{{signal}} {{transport}} {{outcome}}",
                ),
                unit="none",
                stacked=True,
            ),
        ],
    )


def limits() -> Section:
    """What is often empty: items beyond limits, and exports."""
    return Section(
        "Limits and exports",
        [
            panels.over_time(
                "Items beyond a limit, per minute",
                About(
                    "What exceeds a limit is dropped and counted, by limit.",
                    "None.",
                    "Raise that limit, give more memory, or add an instance.",
                    "None in this time",
                ),
                Query(f"sum by (limit) ({rate(names.LIMIT_HITS)}) > 0", "{{limit}}"),
                unit="none",
            ),
            panels.over_time(
                "Exports per minute",
                About(
                    "Pushes to the receiver of the settings, by content and outcome.",
                    "All accepted.",
                    "The service's log says why a push failed.",
                    "Nothing is pushed",
                ),
                Query(f"sum by (sink, outcome) ({rate(names.EXPORTS)})", "{{sink}} {{outcome}}"),
                unit="none",
                stacked=True,
            ),
        ],
        folded=True,
    )


def workers() -> Section:
    """Workers on Kafka, where there are any."""
    return Section(
        "Workers on Kafka",
        [
            panels.over_time(
                "Messages that are not read yet",
                About(
                    "Messages of each topic that the workers have still to read.",
                    "Few, and not more and more.",
                    "More and more: start more workers, up to the number of partitions.",
                    "No worker on Kafka",
                ),
                Query(f"sum by (topic) ({sample_of(names.KAFKA_LAG)})", "{{topic}}"),
                unit="locale",
            ),
            panels.over_time(
                "Messages that cannot be used, per minute",
                About(
                    "Messages laid aside in the topic of dead letters, by reason.",
                    "None.",
                    "Their headers say why, and where each came from.",
                    "None in this time",
                ),
                Query(f"sum by (reason) ({rate(names.KAFKA_DEAD_LETTERS)})", "{{reason}}"),
                unit="none",
            ),
        ],
        folded=True,
    )
