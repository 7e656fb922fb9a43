"""Is it reliable, why did its score fall, has its behaviour changed?"""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About, of_metric, of_metrics
from dashboards.agent.common import CHOSEN, PARTS, SELECTOR, value
from dashboards.board import Section
from dashboards.panels import Query
from dashboards.promql import costs, increase, one, sample_of
from otel_reliability.config import Settings
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.telemetry import names

ALARM: Final = len(f"{Settings().change.runs_per_false_alarm:.0f}") - 1
"""The power of ten at which a change is told, unless a setting says otherwise."""


SUCCEEDED: Final = increase(names.RUNS, CHOSEN + ',outcome="success"', "$__range")


JUDGED: Final = increase(names.RUNS, CHOSEN + ',outcome=~"success|failure"', "$__range")


def verdict() -> Section:
    """Score, tier, and how much they rest on."""
    return Section(
        "Is it reliable?",
        [
            panels.number(
                "Reliability score",
                of_metric("score"),
                Query(value("score"), "{{service_version}}"),
                colours=panels.TIERS,
                decimals=0,
                size=(5, 5),
            ),
            panels.number(
                "Tier",
                of_metric("tier"),
                Query(f"{value('tier')} == 1", "{{tier}} {{service_version}}"),
                text="name",
                named=panels.TIER_COLOURS,
                line=False,
                size=(5, 5),
            ),
            panels.number(
                "Score coverage",
                of_metric("score_coverage"),
                Query(value("score_coverage"), "{{service_version}}"),
                colours=((None, "red"), (60, "yellow"), (100, "green")),
                decimals=0,
                size=(5, 5),
            ),
            panels.number(
                "Runs in the window",
                of_metrics(
                    "How much all other numbers rest on.", "window.runs", "window.effective_runs"
                ),
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
                size=(5, 5),
            ),
        ],
    )


def score() -> Section:
    """What each part costs, over time and now."""
    now = f"sort_desc(avg by (part) ({costs(SELECTOR)}))"
    return Section(
        "Why did the score fall?",
        [
            panels.over_time(
                "The score, and what each part takes from it",
                About(
                    (
                        "Score and penalties stand on one another and make 100: where the "
                        "green falls, the layer that grows is the reason. The most that each "
                        "can take: "
                    )
                    + ", ".join(
                        f"{part.replace('_', ' ')} {points:g}" for part, points in PENALTIES.items()
                    )
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
        ],
    )


def change() -> Section:
    """The evidence, what was noticed, and what came late."""
    return Section(
        "Has its behaviour changed?",
        [
            panels.over_time(
                "Evidence for a change, by signal",
                About(
                    (
                        "How strongly the runs speak for a change of behaviour, as a power "
                        f"of ten, by signal. At {ALARM} (unless change.runs_per_false_alarm "
                        "says otherwise) it is told as a change, a line is drawn through all "
                        "panels, and all begins anew: the agent's next 60 runs are learnt "
                        "from."
                    ),
                    (
                        "Without a change it creeps up to the power of ten of the runs so "
                        "far (2 after a hundred), and falls back now and then. A steep rise "
                        "is what counts."
                    ),
                    (
                        "Compare the time with your deploys. `otel-reliability change` tells "
                        "by which signals, and since when."
                    ),
                    "No evidence for a change",
                ),
                Query(
                    one(f"{sample_of(names.CHANGE_EVIDENCE)}{{{CHOSEN}}}"),
                    "{{signal}} {{service_version}}",
                ),
                limits=(0, ALARM + 1),
                lines=((None, "green"), (ALARM, "red")),
                size=(24, 8),
            )
        ],
    )
