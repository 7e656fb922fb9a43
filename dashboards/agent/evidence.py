"""What it comes to: outcomes, dimensions of evaluation, sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from grafana_foundation_sdk.models import prometheus as asked

from dashboards import panels
from dashboards.about import About, of_metric, of_metrics
from dashboards.agent.common import CHOSEN, SELECTOR, curve, many
from dashboards.board import Section, asked_in
from dashboards.panels import Placed, Query
from dashboards.promql import increase, metric, one
from otel_reliability import metrics
from otel_reliability.model.reading import MetricSpec
from otel_reliability.telemetry import names


def outcomes() -> Section:
    """Outcomes, and what repeated attempts at a task come to."""
    return Section(
        "Does it succeed, and every time?",
        [
            panels.over_time(
                "Outcomes",
                About(
                    "Runs that settled in each interval, by outcome. *completed*: over, but nobody said whether it succeeded.",
                    "Mostly success, few unknown.",
                    "Many unknown or completed: record outcomes (reliability.run.success, or an evaluation).",
                    "No run has settled in this time",
                ),
                Query(f"sum by (outcome) ({increase(names.RUNS, CHOSEN)})", "{{outcome}}"),
                stacked=True,
                bars=True,
                colours={"success": "green", "failure": "red", "completed": "blue", "unknown": "gray"},
            ),
            panels.over_time(
                "pass^k and pass@k",
                of_metrics(
                    "pass^k: all of k attempts succeed. pass@k: at least one does. The gap between them is what retrying would hide.",
                    "pass_hat_k",
                    "pass_at_k",
                ),
                Query(one(f"{metric('pass_hat_k')}{{{SELECTOR}}}"), "pass^{{k}} {{service_version}}"),
                Query(one(f"{metric('pass_at_k')}{{{SELECTOR}}}"), "pass@{{k}} {{service_version}}"),
                unit="percentunit",
                limits=(0, 1),
            ),
            panels.bars_across(
                "Reliability decay",
                of_metric("decay_curve"),
                Query(one(f"{metric('decay_curve')}{{{SELECTOR}}}"), "k = {{k}} {{service_version}}"),
                unit="percent",
                most=100,
                colours=((None, "red"), (50, "orange"), (80, "green")),
                size=(8, 7),
            ),
            many(
                "Attempts at a task",
                "Of several tasks the worst.",
                "variance_amplification",
                "graceful_degradation",
                unit="percent",
                size=(16, 7),
            ),
        ],
    )


def families() -> Section:
    """A panel a family of the table: a metric that is added there appears here by itself."""
    means = {
        "consistency": "Whether repeated attempts at the same task go alike.",
        "predictability": "Whether the agent's own confidence tells what will happen.",
        "robustness": "How much accuracy the agent keeps when it is disturbed.",
        "safety": "Whether the agent keeps the rules it was given.",
    }
    made = [many(family.capitalize(), told, *_of(family)) for family, told in means.items()]
    return Section(
        "Dimensions of evaluation, where there is evidence",
        [
            panels.over_time(
                "Reliability (R) and its dimensions",
                of_metric("reliability"),
                *map(curve, ("reliability", *means)),
                unit="percentunit",
                limits=(0, 1),
                size=(24, 8),
            ),
            *made,
        ],
    )


def _of(family: str) -> Sequence[str]:
    return [spec.name for spec in metrics.ALL_SPECS if spec.family == family]


def sessions() -> Section:
    """Of whole conversations."""
    return Section(
        "Sessions",
        [
            many(
                "Reliability and consistency of sessions",
                "Of the agent's last 100 closed sessions.",
                *_of("sessions"),
            ),
            panels.heat_map(
                "Reliability of closed sessions",
                About(
                    "How far each closed session was from any grave failure, 0 to 1. At most 0.5 it is at risk.",
                    "All in the uppermost rows.",
                    of_metric("mean_session_reliability").do,
                    of_metric("mean_session_reliability").empty,
                ),
                Query(
                    f"sum by (le) ({increase(names.SESSION_RELIABILITY, CHOSEN, suffix='_bucket')})",
                    "{{le}}",
                    form=asked.PromQueryFormat.HEATMAP,
                ),
                "percentunit",
                "Greens",
                (6, 8),
            ),
            panels.heat_map(
                "Consistency of closed sessions",
                About(
                    "How smoothly the agent performed through each closed session, 0 to 1.",
                    "All in the uppermost rows.",
                    of_metric("mean_session_consistency").do,
                    of_metric("mean_session_consistency").empty,
                ),
                Query(
                    f"sum by (le) ({increase(names.SESSION_CONSISTENCY, CHOSEN, suffix='_bucket')})",
                    "{{le}}",
                    form=asked.PromQueryFormat.HEATMAP,
                ),
                "percentunit",
                "Greens",
                (6, 8),
            ),
        ],
    )


def others(shown: Iterable[Section]) -> Iterator[Section]:
    """Metrics that no panel above shows, one a panel: whoever adds a metric to the table sees it without drawing anything."""
    told = " ".join(query.expr for section in shown for query in asked_in(section))
    left = [spec for spec in metrics.ALL_SPECS if not re.search(rf"\b{metric(spec.name)}\b", told)]
    if left:
        yield Section("Other numbers", [_alone(spec) for spec in left])


def _alone(spec: MetricSpec) -> Placed:
    unit = "percentunit" if spec.unit == "{ratio}" else "short"
    return panels.over_time(
        spec.title, of_metric(spec.name), curve(spec.name), unit=unit, limits=(spec.low, spec.high), size=(24, 7)
    )
