"""Fleet: every agent on one page, and which to look at first."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.models import prometheus as asked

from dashboards import panels, service
from dashboards.about import About, of_metric
from dashboards.board import UID, Board, Section, choice, listed, mark, way
from dashboards.panels import Column, Query
from dashboards.promql import BY, WHO, costs, increase, metric, newly, one, sample_of
from otel_reliability.metrics.stability.tier import Tier
from otel_reliability.telemetry import names

CHOSEN: Final = 'service_name=~"$service",gen_ai_agent_name=~"$agent"'
SELECTOR: Final = CHOSEN + ',window=~"$window"'
TIER: Final = metric("tier")


def in_tier(expression: str) -> str:
    """Without the agents of tiers that were not chosen; one without a score belongs to none, and
    stays.
    """
    others = one(f'{TIER}{{{SELECTOR},tier!~"$tier"}} == 1')
    return f"({expression}) unless on ({BY}) ({others})"


def of_agents(expression: str) -> str:
    """The same for counters, which have no window."""
    others = f'{TIER}{{{CHOSEN},tier!~"$tier"}} == 1'
    return f"({expression}) unless on ({WHO}) ({others})"


RUNS: Final = metric("window.runs")
SCORE: Final = in_tier(one(f"{metric('score')}{{{SELECTOR}}}"))
RUNS_NOW: Final = in_tier(one(f"{RUNS}{{{SELECTOR}}}"))
FAILED: Final = increase(names.RUNS, f'{CHOSEN},outcome="failure"', "$__range")
JUDGED: Final = increase(names.RUNS, f'{CHOSEN},outcome=~"success|failure"', "$__range")
EVERY_RUN: Final = increase(names.RUNS, CHOSEN, "$__range")
SIGNALS: Final = "gen_ai_agent_name, signal"
LAST: Final = in_tier(one(f"{sample_of(names.LAST_RUN)}{{{SELECTOR}}}"))
BEFORE: Final = one(f"{metric('score')}{{{SELECTOR}}} offset 1h")
SEE: Final = "Open the agent (click its name in the table) and see what costs its score most."


def agents_in(tier: Tier) -> str:
    """How many agents a tier has."""
    chosen = f'{TIER}{{{SELECTOR},tier="{tier.name}"}}'
    return f"sum({in_tier(one(chosen))})"


def _now() -> Section:
    return Section(
        "The fleet now",
        [
            panels.number(
                "Agents by tier",
                About(
                    "How many agents stand in each tier: "
                    + "; ".join(f"{tier.name} from a score of {tier.least}" for tier in Tier)
                    + ".",
                    "All of them STABLE.",
                    SEE,
                    "No agent has a score yet: each needs some runs and enough evidence",
                ),
                *(Query(agents_in(tier), tier.name) for tier in Tier),
                text="value_and_name",
                line=False,
                named=panels.TIER_COLOURS,
                size=(9, 4),
            ),
            panels.number(
                "Lowest score",
                About(
                    "The score of the least reliable agent.",
                    "80 and above.",
                    SEE,
                    "No agent has a score yet",
                ),
                Query(f"min({SCORE})"),
                colours=panels.TIERS,
                decimals=0,
                size=(5, 4),
            ),
            panels.number(
                "Runs",
                About(
                    "Runs that became final in the time shown.",
                    "About as many as your users asked for.",
                    "Fewer than expected: see the row *Service*.",
                    "No run is final in this time",
                ),
                Query(f"sum({of_agents(f'sum by ({WHO}) ({EVERY_RUN})')})"),
                decimals=0,
                size=(5, 4),
            ),
            panels.number(
                "Failed runs",
                About(
                    "The share of the runs with a known outcome that failed, in the time shown.",
                    "Low, and as always.",
                    "See *Outcomes* of the agents whose share is high.",
                    "No run with a known outcome: record reliability.run.success, or an evaluation",
                ),
                Query(f"(sum({FAILED}) or vector(0)) / (sum({JUDGED}) > 0)"),
                unit="percentunit",
                colours=((None, "green"), (0.1, "yellow"), (0.3, "red")),
                size=(5, 4),
            ),
        ],
    )


def _table() -> Section:
    worst = f"topk by ({BY}) (1, {in_tier(costs(SELECTOR))}) > 0"
    return Section(
        "Every agent",
        [
            panels.listing(
                "Agents, the least reliable first",
                About(
                    (
                        "Each agent with its tier and score, how the score changed in the "
                        "last hour, its runs, the part of the score that costs it most "
                        "points, and when its latest run ended."
                    ),
                    "STABLE, a change near 0, and a latest run not longer ago than usual.",
                    "Click an agent's name for the reasons. Begin with its largest penalty.",
                    "No agent has any run",
                ),
                [
                    Query(in_tier(one(f"{TIER}{{{SELECTOR}}} == 1"))),
                    Query(SCORE),
                    Query(f"({SCORE}) - {BEFORE}"),
                    Query(RUNS_NOW),
                    Query(worst),
                    Query(of_agents(f"sum by ({WHO}) ({EVERY_RUN})")),
                    Query(f"({LAST}) * 1000"),
                ],
                [
                    Column(
                        "gen_ai_agent_name",
                        "Agent",
                        [
                            panels.link(
                                "Why? Open the agent",
                                f"/d/{UID}agent?var-service=${{__data.fields.Service}}&var-agent=${{__data.fields.Agent}}&var-datasource=${{datasource}}&${{__url_time_range}}",
                            )
                        ],
                    ),
                    Column("service_name", "Service"),
                    Column("service_version", "Version"),
                    Column("window", "Window"),
                    Column("tier", "Tier", [*panels.words(panels.TIER_COLOURS), panels.width(110)]),
                    Column(
                        "Value #B",
                        "Score",
                        [*panels.unit_of("short", 0), *panels.coloured(panels.TIERS)],
                    ),
                    Column(
                        "Value #C",
                        "Change in 1 h",
                        [
                            *panels.unit_of("short", 1),
                            *panels.coloured(((None, "red"), (-5, "text"), (5, "green"))),
                        ],
                    ),
                    Column("Value #D", "Runs in window", panels.unit_of("short", 0)),
                    Column("Value #F", "Runs in this time", panels.unit_of("short", 0)),
                    Column("part", "Costs most"),
                    Column(
                        "Value #E",
                        "Points",
                        [
                            *panels.unit_of("short", 1),
                            *panels.coloured(((None, "text"), (5, "orange"), (15, "red"))),
                        ],
                    ),
                    Column("Value #G", "Latest run", panels.unit_of("dateTimeFromNow")),
                ],
                sort=("Score", False),
            )
        ],
    )


def _time() -> Section:
    spread = f"sum by (le) ({increase(names.RUN_SCORE, CHOSEN, suffix='_bucket')})"
    parts = f"avg by (part) ({in_tier(costs(SELECTOR))})"
    return Section(
        "Over time",
        [
            panels.calendar(
                "Score of each agent",
                About(
                    (
                        "One row an agent, coloured by its score: red below 40, orange from "
                        "40, yellow from 60, green from 80. A gap: no score at that time."
                    ),
                    "Green throughout.",
                    (
                        "A row that turns: open that agent at that time. Rows that turn "
                        "together have a common cause, like a model or a tool."
                    ),
                    "No agent has a score yet",
                ),
                Query(
                    SCORE, "{{service_name}} {{gen_ai_agent_name}} {{service_version}} {{window}}"
                ),
                panels.TIERS,
                size=(12, 9),
            ),
            panels.heat_map(
                "Scores at which runs were recorded",
                About(
                    (
                        "How many runs were recorded at which score of their agent. The "
                        "points are single runs: click one to open its trace."
                    ),
                    "All in the upper rows.",
                    "Runs that sink to lower rows: open their traces.",
                    "No run of an agent with a score in this time",
                ),
                Query(spread, "{{le}}", form=asked.PromQueryFormat.HEATMAP, exemplar=True),
                "short",
                "Blues",
            ),
            panels.over_time(
                "What costs points, on average over the agents",
                About(
                    (
                        "The points that each part of the score costs, averaged over the "
                        "agents chosen. Together they are what is missing to 100."
                    ),
                    "A thin stack.",
                    "Begin with the thickest layer. " + of_metric("score").do,
                    "No agent has a score yet",
                ),
                Query(parts, "{{part}}"),
                stacked=True,
            ),
            panels.over_time(
                "Runs by outcome",
                About(
                    (
                        "Runs that became final in each interval, by outcome. *completed*: "
                        "ended, but without a known outcome."
                    ),
                    "Mostly success; few unknown.",
                    (
                        "Many unknown or completed: record outcomes "
                        "(reliability.run.success, or an evaluation). Many failures: sort "
                        "the table by score."
                    ),
                    "No run is final in this time",
                ),
                Query(f"sum by (outcome) ({increase(names.RUNS, CHOSEN)})", "{{outcome}}"),
                stacked=True,
                bars=True,
                colours={
                    "success": "green",
                    "failure": "red",
                    "completed": "blue",
                    "unknown": "gray",
                },
            ),
        ],
    )


def board() -> Board:
    """The dashboard."""
    return Board(
        "fleet",
        "Agents: Fleet",
        "Every agent with its reliability: which to look at first, and since when.",
        [_now(), _table(), _time(), service.row()],
        [
            choice(
                "service",
                "Service",
                f"label_values({RUNS}, service_name)",
                "Services whose agents are shown.",
            ),
            choice(
                "agent",
                "Agent",
                f'label_values({RUNS}{{service_name=~"$service"}}, gen_ai_agent_name)',
                "Agents that are shown.",
            ),
            listed(
                "tier",
                "Tier",
                [tier.name for tier in Tier],
                "Tiers that are shown; agents without a score always are.",
            ),
            choice(
                "window",
                "Window",
                f"label_values({RUNS}, window)",
                "Where agents have several windows: which.",
            ),
        ],
        [
            mark(
                "Behaviour changed",
                newly(SIGNALS, CHOSEN, "5m"),
                "{{gen_ai_agent_name}}: {{signal}}",
            )
        ],
        [way("Agent", "agent", variables=False)],
    )
