"""How it works: its ways, its retries and loops, its context."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import prometheus as asked

from dashboards import panels
from dashboards.about import About, of_metric, of_metrics
from dashboards.agent.common import CHOSEN, curve, many, value
from dashboards.board import Section
from dashboards.panels import Query
from dashboards.promql import per_second, quantile, rate, sample_of
from otel_reliability.telemetry import names

FAILED: Final = rate(names.TOOL_CALLS, CHOSEN + ',ok="false"')


def paths() -> Section:
    """How many ways, how unlike one another, and how alike in what they change."""
    buckets = f"sum by (le) ({per_second(names.PATH_DISTANCE, CHOSEN, suffix='_bucket')})"
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


def usage() -> Section:
    """What a run takes: time, tokens, money; and what retries and loops take of it."""
    hour = "1h"
    tokens = About(
        "Tokens of a run over the last hour: half of the runs used fewer, and 95 % of them.",
        "As always.",
        "A rise without more work: see *Token pressure* and *Retries and loops*.",
        "No run with tokens in the last hour",
    )
    mean = f"{per_second(names.RUN_COST, CHOSEN, hour, '_sum')}"
    count = f"{per_second(names.RUN_COST, CHOSEN, hour, '_count')}"
    return Section(
        "What does a run take?",
        [
            panels.over_time(
                "Duration of a run",
                About(
                    "Over the last hour: half of the runs were faster, and 95 % of them.",
                    "As always.",
                    "Open the trace of a slow run: which step waits?",
                    "No run in the last hour",
                ),
                *(
                    Query(quantile(at, names.RUN_DURATION, CHOSEN, hour), f"p{at * 100:g}")
                    for at in (0.5, 0.95)
                ),
                unit="s",
            ),
            panels.over_time(
                "Tokens of a run",
                tokens,
                *(
                    Query(quantile(at, names.RUN_TOKENS, CHOSEN, hour), f"p{at * 100:g}")
                    for at in (0.5, 0.95)
                ),
                unit="short",
            ),
            panels.over_time(
                "Cost of a run, and of its retries and loops",
                of_metrics(
                    "The mean of the last hour, and what retries and loops take of it.",
                    "retry_cost_per_run",
                    "loop_cost_per_run",
                    empty="No costs known: the telemetry has none, and no price",
                ),
                Query(f"sum({mean}) / (sum({count}) > 0)", "a run"),
                curve("retry_cost_per_run"),
                curve("loop_cost_per_run"),
                unit="currencyUSD",
                size=(8, 8),
            ),
            many(
                "Tokens that retries and loops take",
                "For each run of the window.",
                "retry_tokens_per_run",
                "loop_tokens_per_run",
                unit="short",
                size=(8, 8),
            ),
            panels.over_time(
                "Open runs against their bounds",
                About(
                    (
                        "The largest share of its bound that an open run has reached, by kind of "
                        "usage. Above 1 the run exceeds the bound."
                    ),
                    "Below 1.",
                    "The log event `agent_reliability.run_excess` names the run.",
                    "No run is open, or none has a bound",
                ),
                Query(f"max by (kind) ({sample_of(names.OPEN_RUN_USAGE)}{{{CHOSEN}}})", "{{kind}}"),
                unit="percentunit",
                lines=((None, "green"), (1, "red")),
                size=(8, 8),
            ),
        ],
    )


def retries() -> Section:
    """What failed and was tried again, and what was done again for nothing."""
    return Section(
        "Retries and loops",
        [
            panels.over_time(
                "Retries per minute, by tool",
                About(
                    "Calls that repeat one that failed, by tool, in a minute.",
                    "Few.",
                    "Look at the tool with most: " + of_metric("retries_per_run").do,
                    "No call was retried",
                ),
                Query(
                    f"sum by (gen_ai_tool_name) ({rate(names.RETRIES, CHOSEN)})",
                    "{{gen_ai_tool_name}}",
                ),
                unit="none",
                stacked=True,
            ),
            panels.over_time(
                "Failed tool calls per minute, by tool",
                About(
                    "Calls that failed, by tool, in a minute.",
                    "Few.",
                    (
                        "Mend the tool, or tell the agent in the error whether a further "
                        "attempt can succeed."
                    ),
                    "No call failed",
                ),
                Query(f"sum by (gen_ai_tool_name) ({FAILED})", "{{gen_ai_tool_name}}"),
                unit="none",
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
                        quantile(at, names.TOKEN_PRESSURE, CHOSEN, "1h"),
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
                    f"sum by (le) ({per_second(names.TOKEN_PRESSURE, CHOSEN, suffix='_bucket')})",
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
