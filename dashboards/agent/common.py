"""What the rows of Agent are made with: the chosen agent, and one or several of its metrics."""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import of_metric, of_metrics
from dashboards.panels import Placed, Query
from dashboards.promql import metric, one
from otel_reliability import metrics

CHOSEN: Final = (
    'service_namespace="$namespace",deployment_environment_name="$environment",'
    'service_name="$service",gen_ai_agent_name="$agent",service_version=~"$version"'
)


SELECTOR: Final = CHOSEN + ',window="$window"'


STEPS: Final = {"higher": panels.HIGH_IS_GOOD, "lower": panels.LOW_IS_GOOD}


def value(name: str) -> str:
    """The metric of the chosen agent."""
    return one(metric(name), SELECTOR)


def curve(name: str) -> Query:
    """The same, named by its title."""
    title = metrics.ALL_SPECS[name].title
    return Query(value(name), f"{title} {{{{service_version}}}}")


def many(
    title: str,
    means: str,
    *told: str,
    size: tuple[int, int] = (12, 8),
    unit: str = "percentunit",
    empty: str = "",
) -> Placed:
    """Several metrics of one scale in one panel."""
    limits = (0, 1) if unit == "percentunit" else (0, None)
    return panels.over_time(
        title,
        of_metrics(means, *told, empty=empty),
        *map(curve, told),
        unit=unit,
        limits=limits,
        size=size,
    )


def share(name: str, size: tuple[int, int] = (4, 6)) -> Placed:
    """One metric as a dial."""
    spec = metrics.ALL_SPECS[name]
    return panels.dial(
        spec.title,
        of_metric(name),
        Query(value(name), "{{service_version}}"),
        STEPS[spec.direction],
        size,
    )
