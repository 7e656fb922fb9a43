"""Agent: how reliable one agent is, and why its score fell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from grafana_foundation_sdk.models import prometheus as asked

from dashboards import panels
from dashboards.about import About, of_metric, of_metrics
from dashboards.board import Board, Section, choice, mark, way
from dashboards.panels import Placed, Query
from dashboards.promql import costs, increase, metric, newly, one, sample_of
from otel_reliability import metrics
from otel_reliability.config import Settings
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.telemetry import names

CHOSEN: Final = 'service_name=~"$service",gen_ai_agent_name=~"$agent",service_version=~"$version"'
SELECTOR: Final = CHOSEN + ',window=~"$window"'
ALARM: Final = len(f"{Settings().change.runs_per_false_alarm:.0f}") - 1
"""The power of ten at which a change is told, unless a setting says otherwise."""
PARTS: Final = dict(
    zip((part.replace("_", " ") for part in PENALTIES), ("blue", "purple", "red", "orange", "yellow"), strict=True)
)
SUCCEEDED: Final = increase(names.RUNS, CHOSEN + ',outcome="success"', "$__range")
JUDGED: Final = increase(names.RUNS, CHOSEN + ',outcome=~"success|failure"', "$__range")
FAILED: Final = increase(names.TOOL_CALLS, CHOSEN + ',ok="false"')
_STEPS: Final = {"higher": panels.HIGH_IS_GOOD, "lower": panels.LOW_IS_GOOD}


def value(name: str) -> str:
    """The metric of the chosen agent."""
    return one(f"{metric(name)}{{{SELECTOR}}}")


def curve(name: str) -> Query:
    """The same, named by its title."""
    title = metrics.spec_of(name).title
    return Query(value(name), f"{title} {{{{service_version}}}}")


def many(
    title: str, means: str, *told: str, size: tuple[int, int] = (12, 8), unit: str = "percentunit", empty: str = ""
) -> Placed:
    """Several metrics of one scale in one panel."""
    limits = (0, 1) if unit == "percentunit" else (0, None)
    return panels.over_time(
        title, of_metrics(means, *told, empty=empty), *map(curve, told), unit=unit, limits=limits, size=size
    )


def figure(name: str, unit: str = "short", decimals: int | None = None, size: tuple[int, int] = (4, 4)) -> Placed:
    """One metric as a number."""
    return panels.number(
        metrics.spec_of(name).title,
        of_metric(name),
        Query(value(name), "{{service_version}}"),
        unit=unit,
        decimals=decimals,
        size=size,
    )


def share(name: str, size: tuple[int, int] = (4, 6)) -> Placed:
    """One metric as a dial."""
    spec = metrics.spec_of(name)
    return panels.dial(
        spec.title, of_metric(name), Query(value(name), "{{service_version}}"), _STEPS[spec.direction], size
    )


def _verdict() -> Section:
    return Section(
        "Is it reliable?",
        [
            panels.number(
                "Reliability score",
                of_metric("score"),
                Query(value("score"), "{{service_version}}"),
                colours=panels.TIERS,
                decimals=0,
                size=(4, 5),
            ),
            panels.number(
                "Tier",
                of_metric("tier"),
                Query(f"{value('tier')} == 1", "{{tier}} {{service_version}}"),
                text="name",
                named=panels.TIER_COLOURS,
                line=False,
                size=(4, 5),
            ),
            panels.number(
                "Score coverage",
                of_metric("score_coverage"),
                Query(value("score_coverage"), "{{service_version}}"),
                colours=((None, "red"), (60, "yellow"), (100, "green")),
                decimals=0,
                size=(3, 5),
            ),
            panels.number(
                "Runs in the window",
                of_metrics("How much all other numbers rest on.", "window.runs", "window.effective_runs"),
                Query(value("window.runs"), "runs {{service_version}}"),
                Query(value("window.effective_runs"), "effective {{service_version}}"),
                decimals=0,
                line=False,
                size=(4, 5),
            ),
            panels.number(
                "Successful runs",
                About(
                    "The share of the runs with a known outcome that succeeded, in the time shown.",
                    "As high as the task allows.",
                    "See *Outcomes*, and open traces of failed runs.",
                    "No run with a known outcome: record reliability.run.success, or an evaluation",
                ),
                Query(f"(sum({SUCCEEDED}) or vector(0)) / (sum({JUDGED}) > 0)"),
                unit="percentunit",
                colours=panels.HIGH_IS_GOOD,
                size=(3, 5),
            ),
            panels.number(
                "Flags",
                of_metric("flag"),
                Query(one(f"{metric('flag')}{{{SELECTOR}}}"), "{{flag}} {{service_version}}"),
                colours=panels.ANY_IS_BAD,
                text="value_and_name",
                line=False,
                size=(3, 5),
            ),
            panels.number(
                "Latest run",
                About(
                    "When the agent's latest run ended. An idle agent is not a healthy one: its numbers stand still.",
                    "Not longer ago than usual.",
                    "Is it still called, and do its spans still arrive? See the dashboard *Self*.",
                    "No run has been seen",
                ),
                Query(one(f"{sample_of(names.LAST_RUN)}{{{SELECTOR}}}") + " * 1000", "{{service_version}}"),
                unit="dateTimeFromNow",
                line=False,
                size=(3, 5),
            ),
        ],
    )


def _score() -> Section:
    now = f"sort_desc(avg by (part) ({costs(SELECTOR)}))"
    return Section(
        "Why did the score fall?",
        [
            panels.over_time(
                "The score, and what each part takes from it",
                About(
                    "Score and penalties stand on one another and make 100: where the green falls, the layer that grows is the reason. The most that each can take: "
                    + ", ".join(f"{part.replace('_', ' ')} {points:g}" for part, points in PENALTIES.items())
                    + ". A part without evidence takes nothing.",
                    "All green.",
                    "Begin with the thickest layer; each part has its panel below.",
                    of_metric("score").empty,
                ),
                Query(f"avg({value('score')})", "score"),
                Query(f"avg by (part) ({costs(SELECTOR)})", "{{part}}"),
                limits=(0, 100),
                stacked=True,
                colours={"score": "green", **PARTS},
                size=(16, 10),
            ),
            panels.bars_across(
                "Points lost now",
                About(
                    "What each part of the score costs now, the dearest first.",
                    "Short bars.",
                    "Begin with the longest.",
                    of_metric("score").empty,
                ),
                Query(now, "{{part}}", instant=True),
                most=25,
                colours=((None, "yellow"), (5, "orange"), (15, "red")),
                size=(8, 10),
            ),
            many(
                "The parts of the score",
                "Each part as it is measured, before it is weighted.",
                *PENALTIES,
                size=(24, 8),
            ),
        ],
    )


def _paths() -> Section:
    middle = (0.5, 0.9)
    buckets = f"sum by (le) ({increase(names.PATH_DISTANCE, CHOSEN, suffix='_bucket')})"
    unlike = About(
        "How unlike the runs' paths are to the other runs of their task: 0 the same steps, 1 nothing in common. The points are single runs: click one to open its trace.",
        "Everything in the lowest row.",
        "Open the traces at the top: which step came first that others did not take?",
        "No run with tool calls in this time",
    )
    return Section(
        "Which ways does it take?",
        [
            figure("distinct_paths", decimals=0, size=(4, 6)),
            share("modal_path_share"),
            share("path_similarity"),
            share("effect_agreement"),
            figure("path_entropy_bits", decimals=2, size=(4, 6)),
            share("branch_instability"),
            panels.heat_map(
                "Path distance of runs",
                unlike,
                Query(buckets, "{{le}}", form=asked.PromQueryFormat.HEATMAP, exemplar=True),
                "percentunit",
                "Oranges",
            ),
            panels.over_time(
                "Path distance: middle and upper end",
                unlike,
                *(
                    Query(
                        f"histogram_quantile({at}, sum by (le) ({increase(names.PATH_DISTANCE, CHOSEN, '1h', '_bucket')}))",
                        f"{at:.0%} of the runs of an hour are below",
                        exemplar=at == middle[-1],
                    )
                    for at in middle
                ),
                unit="percentunit",
                limits=(0, 1),
                size=(12, 9),
            ),
            many(
                "How much it varies",
                "How the ways of the runs in the window differ.",
                "path_entropy",
                "tool_variance",
                "tool_call_variation",
                "branch_instability",
            ),
            many(
                "How much stays the same",
                "How the ways of the runs in the window agree.",
                "modal_path_share",
                "path_similarity",
                "effect_agreement",
            ),
        ],
    )


def _retries() -> Section:
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
                Query(f"sum by (gen_ai_tool_name) ({increase(names.RETRIES, CHOSEN)})", "{{gen_ai_tool_name}}"),
                bars=True,
                stacked=True,
            ),
            panels.over_time(
                "Retry explosions",
                About(
                    "Runs in each interval in which one failing call was retried three times or more.",
                    "None.",
                    of_metric("retry_explosion").do,
                    "No run exploded into retries",
                ),
                Query(f"sum({increase(names.RETRY_EXPLOSIONS, CHOSEN)})", "runs"),
                bars=True,
                colours={"runs": "red"},
                size=(6, 8),
            ),
            panels.over_time(
                "Retries of a run",
                About(
                    "Half, and nine in ten, of the runs of an hour have fewer retries.",
                    "0.",
                    of_metric("retries_per_run").do,
                    "No run in this time",
                ),
                *(
                    Query(
                        f"histogram_quantile({at}, sum by (le) ({increase(names.RUN_RETRIES, CHOSEN, '1h', '_bucket')}))",
                        f"{at:.0%}",
                    )
                    for at in (0.5, 0.9)
                ),
                size=(6, 8),
            ),
            panels.over_time(
                "Tool calls",
                About(
                    "Calls of each tool in each interval.",
                    "As the work asks for.",
                    "A tool that others call in vain: see the failed ones.",
                    "No tool was called",
                ),
                Query(f"sum by (gen_ai_tool_name) ({increase(names.TOOL_CALLS, CHOSEN)})", "{{gen_ai_tool_name}}"),
                bars=True,
                stacked=True,
            ),
            panels.over_time(
                "Failed tool calls",
                About(
                    "Calls that failed, by tool, in each interval.",
                    "Few.",
                    "Mend the tool, or tell the agent in the error whether a further attempt can succeed.",
                    "No call failed",
                ),
                Query(f"sum by (gen_ai_tool_name) ({FAILED})", "{{gen_ai_tool_name}}"),
                bars=True,
                stacked=True,
            ),
            figure("longest_retry_chain", decimals=0),
            figure("retries_per_run", decimals=2),
            figure("retry_tokens_per_run", decimals=0),
            figure("retry_seconds_per_run", "s", 1),
            figure("loops", decimals=2),
            panels.number(
                "Exploding runs",
                of_metric("retry_explosion_share"),
                Query(value("retry_explosion_share")),
                unit="percentunit",
                colours=panels.ANY_IS_BAD,
            ),
            many(
                "Shares of runs",
                "How many of the window's runs retried beyond measure, or did again what had already worked.",
                "retry_explosion_share",
                "loop_share",
                size=(12, 7),
            ),
            many(
                "Calls per run",
                "Calls per run that bring nothing new.",
                "retries_per_run",
                "loops",
                unit="short",
                size=(12, 7),
            ),
        ],
    )


def _context() -> Section:
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
                        f"histogram_quantile({at}, sum by (le) ({increase(names.TOKEN_PRESSURE, CHOSEN, '1h', '_bucket')}))",
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


def _outcomes() -> Section:
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


def _families() -> Section:
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


def _sessions() -> Section:
    return Section(
        "Sessions",
        [
            many(
                "Reliability and consistency of sessions", "Of the agent's last 100 closed sessions.", *_of("sessions")
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


def _change() -> Section:
    return Section(
        "Has its behaviour changed?",
        [
            panels.over_time(
                "Evidence for a change, by signal",
                About(
                    f"How strongly the runs speak for a change of behaviour, as a power of ten, by signal. At {ALARM} (unless change.runs_per_false_alarm says otherwise) it is told as a change, a line is drawn through all panels, and all begins anew: the agent's next 60 runs are learnt from.",
                    "Without a change it creeps up to the power of ten of the runs so far (2 after a hundred), and falls back now and then. A steep rise is what counts.",
                    "Compare the time with your deploys. `otel-reliability change` tells by which signals, and since when.",
                    "No evidence for a change",
                ),
                Query(one(f"{sample_of(names.CHANGE_EVIDENCE)}{{{CHOSEN}}}"), "{{signal}} {{service_version}}"),
                limits=(0, ALARM + 1),
                lines=((None, "green"), (ALARM, "red")),
                size=(12, 8),
            ),
            panels.over_time(
                "Changes noticed",
                About(
                    "Changes that were noticed, by the signal that tells them.",
                    "Only where you changed something.",
                    "See the evidence beside it, and `otel-reliability change`.",
                    "No change was noticed",
                ),
                Query(newly("signal", CHOSEN, "$__rate_interval"), "{{signal}}"),
                bars=True,
                size=(6, 8),
            ),
            panels.over_time(
                "Runs revised by late spans",
                About(
                    "Closed runs that late spans changed or took back: gauges follow, counters wait until a run settles.",
                    "Few.",
                    "Raise assembly.linger, or send spans sooner.",
                    "No run was revised",
                ),
                Query(f"sum({increase(names.REVISIONS, CHOSEN)})", "runs"),
                bars=True,
                size=(6, 8),
            ),
        ],
    )


def board() -> Board:
    """The dashboard."""
    runs = metric("window.runs")
    at = 'service_name=~"$service"'
    return Board(
        "agent",
        "Agents: Agent",
        "How reliable one agent is, why its score fell, and whether its behaviour changed.",
        [_verdict(), _score(), _change(), _paths(), _retries(), _context(), _outcomes(), _families(), _sessions()],
        [
            choice("service", "Service", f"label_values({runs}, service_name)", "The agent's service.", several=False),
            choice(
                "agent",
                "Agent",
                f"label_values({runs}{{{at}}}, gen_ai_agent_name)",
                "The agent that is shown.",
                several=False,
            ),
            choice(
                "version",
                "Version",
                f'label_values({runs}{{{at},gen_ai_agent_name=~"$agent"}}, service_version)',
                "Where agent_key has service.version: which.",
            ),
            choice(
                "window",
                "Window",
                f"label_values({runs}, window)",
                "Where agents have several windows: which.",
                several=False,
            ),
        ],
        [
            mark(
                "Behaviour changed",
                newly("signal", CHOSEN, "5m"),
                "{{signal}}",
            )
        ],
        [way("Fleet", "fleet", variables=False), way("Self", "self", variables=False)],
    )
