"""Is it reliable, why did its score fall, has its behaviour changed?"""

from __future__ import annotations

from typing import Final

from dashboards import panels
from dashboards.about import About, of_metric, of_metrics
from dashboards.agent.common import CHOSEN, SELECTOR, value
from dashboards.board import Section
from dashboards.panels import Query
from dashboards.promql import WHO, begun, costs, greatest, sample_of
from otel_reliability.config import Settings
from otel_reliability.metrics.stability.score import PENALTIES
from otel_reliability.telemetry import names

CHANGES: Final = sample_of(names.CHANGES)
ALARM: Final = len(f"{Settings().change.runs_per_false_alarm:.0f}") - 1
"""The power of ten at which a change is told, unless a setting says otherwise."""


def verdict() -> Section:
    """Grade, success, errors, the largest penalty, since when; and how much they rest on."""
    changed = f"max_over_time((time() + 0 * ({begun(CHANGES, WHO, CHOSEN)}))[$__range:1m])"
    part = f"topk(1, {costs(SELECTOR)}) > 0"
    return Section(
        "Is it reliable?",
        [
            panels.number(
                "Grade",
                of_metric("grade"),
                Query(value("grade"), "{{service_version}}"),
                unit="none",
                colours=((None, "text"),),
                mapped=panels.GRADES,
                size=(4, 5),
            ),
            panels.number(
                "Runs that succeed",
                of_metric("success_rate"),
                Query(value("success_rate"), "{{service_version}}"),
                unit="percentunit",
                colours=panels.SUCCESS,
                decimals=0,
                size=(4, 5),
            ),
            panels.number(
                "Runs that end in an error",
                of_metric("error_rate"),
                Query(value("error_rate"), "{{service_version}}"),
                unit="percentunit",
                colours=panels.ERRORS,
                decimals=0,
                size=(4, 5),
            ),
            panels.number(
                "Reliability score",
                of_metric("score"),
                Query(value("score"), "{{service_version}}"),
                unit="none",
                colours=panels.TIERS,
                decimals=0,
                size=(3, 5),
            ),
            panels.number(
                "Largest penalty",
                About(
                    "The part that costs the score most points now.",
                    "Few points.",
                    "Each part has its panel below.",
                    "No part costs a point",
                ),
                Query(part, "{{part}}"),
                unit="none",
                colours=((None, "text"), (0, "yellow"), (5, "orange"), (15, "red")),
                decimals=1,
                text="value_and_name",
                size=(5, 5),
            ),
            panels.number(
                "Changed",
                About(
                    "When its behaviour last changed, in the time shown.",
                    "When you changed something.",
                    "See *Evidence for a change*: which signals, and since when?",
                    "No change in this time",
                ),
                Query(f"1000 * max({changed})"),
                unit="dateTimeFromNow",
                size=(4, 5),
            ),
            panels.number(
                "Score coverage",
                of_metric("score_coverage"),
                Query(value("score_coverage"), "{{service_version}}"),
                unit="none",
                colours=((None, "red"), (60, "yellow"), (100, "green")),
                decimals=0,
                size=(8, 4),
            ),
            panels.number(
                "Runs in the window",
                of_metrics(
                    "How much all other numbers rest on.", "window.runs", "window.effective_runs"
                ),
                Query(value("window.runs"), "runs {{service_version}}"),
                Query(value("window.effective_runs"), "effective {{service_version}}"),
                unit="locale",
                decimals=0,
                text="value_and_name",
                size=(8, 4),
            ),
            panels.number(
                "Latest run",
                About(
                    "When its latest run ended.",
                    "Not longer ago than usual.",
                    "Is it called at all, and do its spans arrive?",
                    "No run is known",
                ),
                Query(f"1000 * max({greatest(sample_of(names.LAST_RUN), CHOSEN)})"),
                unit="dateTimeFromNow",
                size=(8, 4),
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
                unit="none",
                limits=(0, 100),
                stacked=True,
                colours={"score": "green", **panels.PART_COLOURS},
                size=(16, 10),
            ),
            panels.bars_across(
                "Points lost now",
                About(
                    "What each part of the score costs now, the largest first.",
                    "Short bars.",
                    "Begin with the longest.",
                    of_metric("score").empty,
                ),
                Query(now, "{{part}}", instant=True),
                unit="none",
                most=25,
                named=panels.PART_COLOURS,
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
                    greatest(sample_of(names.CHANGE_EVIDENCE), CHOSEN),
                    "{{signal}} {{service_version}}",
                ),
                limits=(0, ALARM + 1),
                lines=((None, "green"), (ALARM, "red")),
                size=(24, 8),
            )
        ],
    )
