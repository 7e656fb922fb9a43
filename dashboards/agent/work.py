"""How it works: its ways, its retries and loops, its context."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import prometheus as asked

from dashboards import panels
from dashboards.about import About, of_metric
from dashboards.agent.common import CHOSEN, many, value
from dashboards.board import Section
from dashboards.panels import Query
from dashboards.promql import increase
from otel_reliability.telemetry import names

FAILED: Final = increase(names.TOOL_CALLS, CHOSEN + ',ok="false"')


def paths() -> Section:
    """How many ways, how unlike one another, and how alike in what they change."""
    buckets = f"sum by (le) ({increase(names.PATH_DISTANCE, CHOSEN, suffix='_bucket')})"
    unlike = About(
        (
            "How unlike the runs' paths are to the other runs of their task: 0 the same "
            "steps, 1 nothing in common. The points are single runs: click one to open its "
            "trace."
        ),
        "Everything in the lowest row.",
        "Open the traces at the top: which step came first that others did not take?",
        "No run with tool calls in this time",
    )
    return Section(
        "Which ways does it take?",
        [
            panels.heat_map(
                "Path distance of runs",
                unlike,
                Query(buckets, "{{le}}", form=asked.PromQueryFormat.HEATMAP, exemplar=True),
                "percentunit",
                "Oranges",
            ),
            many(
                "How much it varies",
                "How the ways of the runs in the window differ.",
                "path_entropy",
                "tool_variance",
                "tool_call_variation",
                "branch_instability",
                size=(12, 9),
            ),
        ],
    )


def retries() -> Section:
    """What failed and was tried again, and what was done again for nothing."""
    return Section(
        "Retries and loops",
        [
            panels.over_time(
                "Retries by tool",
                About(
                    "Calls that repeat one that failed, by tool, in each interval.",
                    "Few.",
                    "Look at the tool with most: " + of_metric("retries_per_run").do,
                    "No call was retried",
                ),
                Query(
                    f"sum by (gen_ai_tool_name) ({increase(names.RETRIES, CHOSEN)})",
                    "{{gen_ai_tool_name}}",
                ),
                bars=True,
                stacked=True,
            ),
            panels.over_time(
                "Failed tool calls",
                About(
                    "Calls that failed, by tool, in each interval.",
                    "Few.",
                    (
                        "Mend the tool, or tell the agent in the error whether a further "
                        "attempt can succeed."
                    ),
                    "No call failed",
                ),
                Query(f"sum by (gen_ai_tool_name) ({FAILED})", "{{gen_ai_tool_name}}"),
                bars=True,
                stacked=True,
            ),
            many(
                "Shares of runs",
                (
                    "How many of the window's runs retried beyond measure, or did again what "
                    "had already worked."
                ),
                "retry_explosion_share",
                "loop_share",
                size=(12, 8),
            ),
            many(
                "Calls per run",
                "Calls per run that bring nothing new.",
                "retries_per_run",
                "loops",
                unit="short",
                size=(12, 8),
            ),
        ],
    )


def context() -> Section:
    """How full it gets."""
    about = of_metric("token_budget_pressure", " 1 is the limit, above 0.8 the agent is flagged.")
    lines = ((None, "green"), (0.8, "orange"), (1, "red"))
    return Section(
        "Does its context suffice?",
        [
            panels.over_time(
                "Token pressure against the limit",
                about,
                Query(value("token_budget_pressure"), "average of the window {{service_version}}"),
                *(
                    Query(
                        (
                            f"histogram_quantile({at}, sum by (le) "
                            f"({increase(names.TOKEN_PRESSURE, CHOSEN, '1h', '_bucket')}))"
                        ),
                        f"{at:.0%} of the runs of an hour are below",
                    )
                    for at in (0.5, 0.95)
                ),
                unit="percentunit",
                limits=(0, 1.05),
                lines=lines,
                size=(16, 8),
            ),
            panels.heat_map(
                "Token pressure of runs",
                about,
                Query(
                    f"sum by (le) ({increase(names.TOKEN_PRESSURE, CHOSEN, suffix='_bucket')})",
                    "{{le}}",
                    form=asked.PromQueryFormat.HEATMAP,
                    exemplar=True,
                ),
                "percentunit",
                "Purples",
                (8, 8),
            ),
        ],
    )
