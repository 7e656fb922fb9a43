"""The page of all metrics, from the table of them and the table of instruments."""

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

What each number is, what it needs, and how it leaves. A number without evidence is absent: that is neither 0 nor 1.
`otel-reliability explain NAME` tells the same on a terminal.

Every number is one of a *window* of runs of one agent. Its OTel name is its name here behind `agent.reliability.`;
Prometheus' name is that of the OTLP translation, by whichever way it comes. Data points carry `service.namespace`,
`service.name`, `deployment.environment.name` where they are known, `gen_ai.agent.name`, what `agent_key` adds, and `window`
where there are several.
All names are in development: a name changes only with a line in the changelog.
"""

_FAMILIES: Final = {
    "window": "The window itself",
    "stability": "Stability (lower is better, but for the score)",
    "consistency": "Consistency",
    "predictability": "Predictability",
    "robustness": "Robustness",
    "safety": "Safety",
    "reliability": "Reliability",
    "passes": "Repeated attempts",
    "sessions": "Sessions",
}
_DIRECTIONS: Final = {"lower": "lower is better", "higher": "higher is better", "neutral": "neither way is better"}


def page() -> str:
    """A section a family with what each metric is, then the instruments that no window metric stands behind."""
    sections = [ABOUT, *_families(), *_instruments()]
    return "\n".join(sections)


def _families() -> Iterator[str]:
    for family, specs in itertools.groupby(metrics.ALL_SPECS, key=lambda spec: spec.family):
        title = _FAMILIES.get(family, family.capitalize())
        yield f"## {title}\n\n" + "\n".join(map(_metric, specs))


def _metric(spec: MetricSpec) -> str:
    instrument = Instrument(names.PREFIX + spec.name, "gauge", spec.unit, spec.description)
    return (
        f"### `{spec.name}`: {spec.title}\n\n"
        f"{spec.description}\n\n"
        f"- **Formula**: {_code(spec.formula)}\n"
        f"- **Range**: {_range(spec)}, {_DIRECTIONS[spec.direction]}\n"
        f"- **Evidence**: {spec.evidence}\n"
        f"- **To improve it**: {spec.improve}\n"
        f"- **Source**: {spec.source}\n"
        + (
            f"- **OTel**: gauge `{instrument.name}`, unit `{spec.unit}`; Prometheus `{family_of(instrument)}`\n"
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


def _instruments() -> Iterator[str]:
    others = (names.LAST_RUN, names.CHANGE_EVIDENCE, names.INFO)
    yield _table("Gauges that are of no window", others)
    yield _table("Counters and histograms of runs and sessions", (*names.COUNTERS, *names.HISTOGRAMS))
    yield _table("The semantic conventions' own, where `telemetry.standard_metrics` asks for them", names.STANDARD)
    yield _table("Self-telemetry", names.SELF)
    yield _table("Self-telemetry of the service", names.SERVICE)
    yield _table("Self-telemetry of workers on Kafka", names.KAFKA)


def _table(title: str, specs: tuple[Instrument, ...]) -> str:
    rows = "".join(
        f"| `{spec.name}` | {spec.kind} | `{spec.unit}` | {', '.join(f'`{name}`' for name in spec.attributes)} "
        f"| `{_in_prometheus(spec)}` | {spec.description} |\n"
        for spec in specs
    )
    return (
        f"## {title}\n\n| name | kind | unit | attributes | Prometheus | meaning |\n|---|---|---|---|---|---|\n{rows}"
    )


def _in_prometheus(spec: Instrument) -> str:
    return family_of(spec) + ("_total" if spec.kind == "counter" else "")
