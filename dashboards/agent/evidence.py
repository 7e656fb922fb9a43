"""What it comes to: outcomes, dimensions of evaluation, sessions."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.models import prometheus as asked

from dashboards import panels
from dashboards.about import About, of_metric, of_metrics
from dashboards.agent.common import CHOSEN, curve, many, value
from dashboards.board import Section
from dashboards.objectives import failed_share
from dashboards.panels import Query
from dashboards.promql import per_second, rate
from otel_reliability import metrics
from otel_reliability.telemetry import names


def outcomes() -> Section:
    """Outcomes, and what repeated attempts at a task come to."""
    return Section(
        "Does it succeed, and every time?",
        [
            panels.over_time(
                "Runs per minute by outcome",
                About(
                    (
                        "Runs that became final in a minute, by outcome. *completed*: "
                        "over, but nobody said whether it succeeded."
                    ),
                    "Mostly success, few unknown.",
                    (
                        "Many unknown or completed: record outcomes "
                        "(reliability.run.success, or an evaluation)."
                    ),
                    "No run is final in this time",
                ),
                Query(f"sum by (outcome) ({rate(names.RUNS, CHOSEN)})", "{{outcome}}"),
                unit="none",
                stacked=True,
                colours=panels.OUTCOMES,
            ),
            many(
                "Success rate and error rate",
                "Of the runs in the window.",
                "success_rate",
                "error_rate",
            ),
            panels.over_time(
                "Error budget left",
                of_metric("error_budget_left"),
                Query(value("error_budget_left"), "{{signal}} {{service_version}}"),
                unit="percentunit",
                limits=(None, 1),
                size=(12, 8),
            ),
            panels.over_time(
                "Failed runs against the objective",
                About(
                    "The share of the runs of an hour that failed, and the share that may fail.",
                    "Below the objective's line most of the time.",
                    "*AgentErrorBudgetBurnsFast* says how much above it is too much.",
                    "No objective (`objectives`), or no run in this time",
                ),
                Query(failed_share("1h", CHOSEN), "failed: {{signal}}"),
                Query(f"1 - {value('objective')}", "may fail: {{signal}}"),
                unit="percentunit",
                limits=(0, None),
                size=(12, 8),
            ),
            panels.over_time(
                "pass^k and pass@k",
                of_metrics(
                    (
                        "pass^k: all of k attempts succeed. pass@k: at least one does. The "
                        "gap between them is what retrying would hide."
                    ),
                    "pass_hat_k",
                    "pass_at_k",
                ),
                Query(value("pass_hat_k"), "pass^{{k}} {{service_version}}"),
                Query(value("pass_at_k"), "pass@{{k}} {{service_version}}"),
                unit="percentunit",
                limits=(0, 1),
                size=(24, 8),
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
        folded=True,
    )


def _of(family: str) -> Sequence[str]:
    return [spec.name for spec in metrics.ALL_SPECS.values() if spec.family == family]


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
                    (
                        "How far each closed session was from any grave failure, 0 to 1. At "
                        "most 0.5 it is at risk."
                    ),
                    "All in the uppermost rows.",
                    of_metric("mean_session_reliability").do,
                    of_metric("mean_session_reliability").empty,
                ),
                Query(
                    (
                        "sum by (le) "
                        f"({per_second(names.SESSION_RELIABILITY, CHOSEN, suffix='_bucket')})"
                    ),
                    "{{le}}",
                    form=asked.PromQueryFormat.HEATMAP,
                ),
                "percentunit",
                "Greens",
                (12, 8),
            ),
        ],
        folded=True,
    )
