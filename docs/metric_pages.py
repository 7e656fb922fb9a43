"""The page of all metrics, from the table of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from otel_reliability import metrics
from otel_reliability.model.reading import MetricSpec
from otel_reliability.telemetry import names
from otel_reliability.telemetry.names import Instrument
from otel_reliability.telemetry.prometheus import family_of

ABOUT: Final = """# Metrics

What each number means, which data it needs, and its formula and source. Without that data a number is absent: it is neither 0
nor 1. `otel-reliability explain NAME` prints the same on a terminal.

Every number belongs to a *window* of runs of one agent. Its OTel name is `agent.reliability.` and its name here; [Prometheus
names](prometheus.md) lists every series with type and labels, counters and histograms included. All names are in development: a
name changes only with a line in the changelog.
"""

_FAMILIES: Final = {
    "window": "The window itself",
    "stability": "Stability (lower is better, except for the score)",
    "consistency": "Consistency",
    "predictability": "Predictability",
    "robustness": "Robustness",
    "safety": "Safety",
    "reliability": "Reliability",
    "passes": "Repeated attempts",
    "coding": "Coding agents (a run is a prompt)",
    "sessions": "Sessions",
}
_DIRECTIONS: Final = {
    "lower": "lower is better",
    "higher": "higher is better",
    "neutral": "neither direction is better",
}


def page() -> str:
    """Return a section for each family, with every metric of it."""
    return "\n".join((ABOUT, *_families()))


def _families() -> Iterator[str]:
    for family, specs in itertools.groupby(
        metrics.ALL_SPECS.values(), key=lambda spec: spec.family
    ):
        title = _FAMILIES.get(family, family.capitalize())
        yield f"## {title}\n\n" + "\n".join(map(_metric, specs))


def _metric(spec: MetricSpec) -> str:
    instrument = Instrument(names.PREFIX + spec.name, "gauge", spec.unit, spec.description)
    return (
        f"### `{spec.name}`: {spec.title}\n\n"
        f"{spec.description}\n\n"
        f"- **Formula**: {_code(spec.formula)}\n"
        f"- **Range**: {_range(spec)}, {_DIRECTIONS[spec.direction]}\n"
        f"- **Required data**: {spec.required_data}\n"
        f"- **To improve it**: {spec.improve}\n"
        f"- **Source**: {spec.source}\n"
        + (
            (
                f"- **OTel**: gauge `{instrument.name}`, unit `{spec.unit}`; Prometheus "
                f"`{family_of(instrument)}`\n"
            )
            if spec.emitted
            else "- **OTel**: not emitted; in reports, on pages, in the API and in gates\n"
        )
    )


def _range(spec: MetricSpec) -> str:
    low = "−∞" if spec.low is None else f"{spec.low:g}"
    high = "∞" if spec.high is None else f"{spec.high:g}"
    return f"{low} to {high}"


def _code(formula: str) -> str:
    return formula if "`" in formula else f"`{formula}`"
