"""Fleet: every agent on one page, and which to look at first."""

from __future__ import annotations

from typing import Final

from dashboards import panels, service
from dashboards.about import About, of_metric
from dashboards.board import UID, Board, Section, choice, marks, way
from dashboards.panels import Column, Query
from dashboards.promql import (
    BY,
    WHO,
    begun,
    costs,
    greatest,
    increase,
    metric,
    one,
    per_second,
    quantile,
    rate,
    sample_of,
    worst,
)
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.telemetry import names

CHOSEN: Final = (
    'service_namespace=~"$namespace",service_name=~"$service",'
    'deployment_environment_name=~"$environment",gen_ai_agent_name=~"$agent"'
)
SELECTOR: Final = CHOSEN + ',window=~"$window"'

RUNS: Final = metric("window.runs")
RUNS_NOW: Final = one(RUNS, SELECTOR)
SCORE: Final = one(metric("score"), SELECTOR)
GRADE: Final = one(metric("grade"), SELECTOR)
SUCCESS: Final = one(metric("success_rate"), SELECTOR)
ERRORS: Final = one(metric("error_rate"), SELECTOR)
EVERY_RUN: Final = increase(names.RUNS, CHOSEN, "$__range")
CHANGES: Final = sample_of(names.CHANGES)
AGENT: Final = "{{service_name}}/{{gen_ai_agent_name}} {{deployment_environment_name}}"
AGENT_IN_WINDOW: Final = f"{AGENT} {{{{service_version}}}} {{{{window}}}}"
HOUR: Final = "1h"
SEE: Final = "Open the agent (click its name in the table), and begin with what it fails at."
WORST: Final = 20
"""Agents that a panel over time shows at most: more are not told apart."""


def in_all(value: str) -> str:
    """The mean over all runs of all agents: each agent counts as often as it has runs."""
    return f"sum(({value}) * on ({BY}) {RUNS_NOW}) / sum({RUNS_NOW} and on ({BY}) ({value}))"


def graded(grade: int) -> str:
    """How many agents have a grade; no answer where there are no agents."""
    return f"sum({GRADE} == bool {grade})"


def _now() -> Section:
    per_run = f"sum({per_second(names.RUN_COST, CHOSEN, HOUR, '_sum')})"
    return Section(
        "Now",
        [
            service.ready((4, 4)),
            panels.number(
                "Runs per minute",
                About(
                    "Runs that became final in a minute, over the last five.",
                    "About as many as your users ask for.",
                    "Fewer than expected: see the row *Service*.",
                    "No run became final",
                ),
                Query(f"sum({rate(names.RUNS, CHOSEN, '5m')})"),
                unit="none",
                decimals=1,
                size=(4, 4),
            ),
            panels.number(
                "Runs that succeed",
                About(
                    (
                        "The share of successful runs among those with a known outcome: of all "
                        "agents together, and of the one with the lowest."
                    ),
                    "80 % and above.",
                    SEE,
                    "No outcomes: record reliability.run.success, or an evaluation",
                ),
                Query(in_all(SUCCESS), "all"),
                Query(f"bottomk(1, {SUCCESS})", "{{gen_ai_agent_name}}"),
                unit="percentunit",
                colours=panels.SUCCESS,
                decimals=0,
                size=(5, 4),
                text="value_and_name",
            ),
            panels.number(
                "Runs that end in an error",
                About(
                    (
                        "The share of runs that ended in an error: of all agents together, and of "
                        "the one with the most."
                    ),
                    "Below 5 %.",
                    SEE,
                    "No run whose end is known",
                ),
                Query(in_all(ERRORS), "all"),
                Query(f"topk(1, {ERRORS} > 0)", "{{gen_ai_agent_name}}"),
                unit="percentunit",
                colours=panels.ERRORS,
                decimals=0,
                size=(5, 4),
                text="value_and_name",
            ),
            panels.number(
                "Duration of a run",
                About(
                    "Half of the runs of the last hour were faster, and 95 % of them.",
                    "As always.",
                    "See *p95* in the table, and open a slow run's trace.",
                    "No run in the last hour",
                ),
                *(
                    Query(quantile(at, names.RUN_DURATION, CHOSEN, HOUR), f"p{at * 100:g}")
                    for at in (0.5, 0.95)
                ),
                unit="s",
                size=(3, 4),
                text="value_and_name",
            ),
            panels.number(
                "Cost per hour",
                About(
                    "What the runs of the last hour cost, where it is known: as reported, else at list prices.",
                    "As planned.",
                    "See *Cost of a run* in the table.",
                    "No costs known",
                ),
                Query(f"3600 * {per_run}"),
                unit="currencyUSD",
                size=(3, 4),
            ),
            panels.number(
                "Agents by grade",
                About(
                    (
                        "How many agents have each grade, the worse of what their score and "
                        "their success rate are on the scale of the tiers. *failing*: fails more "
                        "often than it succeeds, by more than chance."
                    ),
                    "All of them stable.",
                    SEE,
                    "No agent has a grade now",
                ),
                *(Query(graded(value), word) for value, (word, _) in panels.GRADES.items()),
                text="value_and_name",
                unit="none",
                named=dict(panels.GRADES.values()),
                decimals=0,
                size=(16, 4),
            ),
            panels.number(
                "Alerts that fire",
                About(
                    (
                        "Alerts of the shipped rules that fire now, as Prometheus evaluates them. "
                        "Alerts that Grafana evaluates are not counted here."
                    ),
                    "None.",
                    "Open the alert's runbook.",
                    "None fires (or the rules are not loaded in Prometheus)",
                ),
                Query(
                    'count by (severity) (ALERTS{alertstate="firing",'
                    'alertname=~"Agent.*|Reliability.*"})',
                    "{{severity}}",
                ),
                text="value_and_name",
                unit="none",
                colours=((None, "text"), (1, "red")),
                decimals=0,
                size=(8, 4),
            ),
        ],
    )


def _table() -> Section:
    points = f"topk by ({BY}) (1, {costs(SELECTOR)}) > 0"
    slow = quantile(0.95, names.RUN_DURATION, CHOSEN, HOUR, f"le, {WHO}")
    spent = f"sum by ({WHO}) ({per_second(names.RUN_COST, CHOSEN, HOUR, '_sum')})"
    with_cost = f"sum by ({WHO}) ({per_second(names.RUN_COST, CHOSEN, HOUR, '_count')})"
    change = f"max by ({WHO}) ({begun(CHANGES, WHO, CHOSEN)})"
    changed = f"max_over_time((time() + 0 * ({change}))[$__range:1m])"
    link = "&".join(
        f"var-{variable}=${{__data.fields.{field}:percentencode}}"
        for variable, field in (
            ("namespace", "Namespace"),
            ("environment", "Environment"),
            ("service", "Service"),
            ("agent", "Agent"),
        )
    )
    return Section(
        "Every agent",
        [
            panels.listing(
                "Agents, the worst first",
                About(
                    (
                        "Each agent with its grade, success, errors and score, the part that "
                        "costs its score most points, how long a run takes (p95) and what it "
                        "costs in the last hour, when its behaviour last changed in the time "
                        "shown, and when its latest run ended. Without data now, only runs stand "
                        "there."
                    ),
                    "stable, no errors, and a latest run not longer ago than usual.",
                    "Click an agent's name for the reasons. Begin at the top.",
                    "No agent has any run",
                ),
                [
                    Query(f"({GRADE}) or ({panels.UNDECIDED} + 0 * {RUNS_NOW})"),
                    Query(SUCCESS),
                    Query(ERRORS),
                    Query(SCORE),
                    Query(points),
                    Query(f"{slow} > 0"),
                    Query(f"{spent} / ({with_cost} > 0)"),
                    Query(RUNS_NOW),
                    Query(f"1000 * {changed}"),
                    Query(f"1000 * {greatest(sample_of(names.LAST_RUN), CHOSEN)}"),
                    Query(f"round(sum by ({WHO}) ({EVERY_RUN}))"),
                ],
                [
                    Column(
                        "gen_ai_agent_name",
                        "Agent",
                        [
                            panels.link(
                                "Why? Open the agent",
                                f"/d/{UID}agent?{link}&var-datasource=${{datasource}}&${{__url_time_range}}",
                            )
                        ],
                    ),
                    Column("deployment_environment_name", "Environment"),
                    Column("service_name", "Service"),
                    Column("service_namespace", "Namespace"),
                    Column("service_version", "Version"),
                    Column("window", "Window"),
                    Column(
                        "Value #A",
                        "Grade",
                        [
                            *panels.words(
                                {**panels.GRADES, panels.UNDECIDED: ("undecided", "text")}
                            ),
                            panels.width(100),
                        ],
                    ),
                    Column(
                        "Value #B",
                        "Succeed",
                        [
                            *panels.unit_of("percentunit", 0),
                            *panels.coloured(panels.SUCCESS),
                        ],
                    ),
                    Column(
                        "Value #C",
                        "Errors",
                        [
                            *panels.unit_of("percentunit", 0),
                            *panels.coloured(panels.ERRORS),
                        ],
                    ),
                    Column(
                        "Value #D",
                        "Score",
                        [*panels.unit_of("none", 0), *panels.coloured(panels.TIERS)],
                    ),
                    Column("part", "Costs most"),
                    Column(
                        "Value #E",
                        "Points",
                        [
                            *panels.unit_of("none", 1),
                            *panels.coloured(((None, "text"), (5, "orange"), (15, "red"))),
                        ],
                    ),
                    Column("Value #F", "p95", panels.unit_of("s", 1)),
                    Column("Value #G", "Cost of a run", panels.unit_of("currencyUSD", 4)),
                    Column("Value #H", "Runs in window", panels.unit_of("locale", 0)),
                    Column("Value #K", "Runs in this time", panels.unit_of("locale", 0)),
                    Column("Value #I", "Changed", panels.unit_of("dateTimeFromNow")),
                    Column("Value #J", "Latest run", panels.unit_of("dateTimeFromNow")),
                ],
                sort=[("Grade", False), ("Succeed", False), ("Score", False)],
                size=(24, 12),
            )
        ],
    )


def _time() -> Section:
    parts = " or ".join(
        f'label_replace(max({one(metric(part), SELECTOR)}) * {points:g}, "part", '
        f'"{part.replace("_", " ")}", "", "")'
        for part, points in PENALTIES.items()
    )
    return Section(
        "Over time",
        [
            panels.calendar(
                f"Grade of the {WORST} worst agents",
                About(
                    (
                        "One row an agent, coloured by its grade: red failing or critical, "
                        "orange unstable, yellow variable, green stable. A gap: no data."
                    ),
                    "Green throughout.",
                    (
                        "A row that turns: open that agent at that time. Rows that turn "
                        "together have a common cause, like a model or a tool."
                    ),
                    "No agent had a grade in this time",
                ),
                Query(worst(metric("grade"), SELECTOR, WORST), AGENT_IN_WINDOW),
                tuple((value or None, colour) for value, (_, colour) in panels.GRADES.items()),
                size=(12, 10),
            ),
            panels.over_time(
                "Success rate of the ten worst agents",
                of_metric("success_rate"),
                Query(worst(metric("success_rate"), SELECTOR, 10), AGENT_IN_WINDOW),
                unit="percentunit",
                limits=(0, 1),
                size=(12, 10),
            ),
            panels.over_time(
                "Runs per minute by outcome",
                About(
                    (
                        "Runs that became final in a minute, by outcome. *completed*: "
                        "ended, but without a known outcome."
                    ),
                    "Mostly success; few unknown.",
                    (
                        "Many unknown or completed: record outcomes "
                        "(reliability.run.success, or an evaluation). Many failures: begin at "
                        "the top of the table."
                    ),
                    "No run is final in this time",
                ),
                Query(f"sum by (outcome) ({rate(names.RUNS, CHOSEN)})", "{{outcome}}"),
                unit="none",
                stacked=True,
                colours=panels.OUTCOMES,
            ),
            panels.over_time(
                "Most points that one agent loses, by part",
                About(
                    ("The points that each part of the score costs the agent that it costs most."),
                    "Low curves.",
                    "Find the agent in the table, column *Costs most*. " + of_metric("score").do,
                    "No agent has a score yet",
                ),
                Query(parts, "{{part}}"),
                unit="none",
                colours=panels.PART_COLOURS,
            ),
        ],
    )


def board() -> Board:
    """The dashboard."""
    return Board(
        "fleet",
        "Agents: Fleet",
        "Every agent with its reliability: which to look at first, and since when.",
        [_now(), _table(), _time(), service.row(), service.limits(), service.workers()],
        [
            choice(
                "namespace",
                "Namespace",
                f"label_values({RUNS}, service_namespace)",
                "Namespaces whose services are shown.",
            ),
            choice(
                "environment",
                "Environment",
                f"label_values({RUNS}, deployment_environment_name)",
                "Environments that are shown.",
            ),
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
            choice(
                "window",
                "Window",
                f"label_values({RUNS}, window)",
                "Where agents have several windows: which.",
            ),
        ],
        marks(CHOSEN, "{{gen_ai_agent_name}} {{deployment_environment_name}}: "),
        [way("Agent", "agent")],
    )
