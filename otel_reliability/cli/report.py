"""`otel-reliability report`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from otel_reliability.change.recording import Observations
from otel_reliability.cli.options import Choice, baseline_option, form, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read
from otel_reliability.errors import ConfigurationError
from otel_reliability.model.run import FINGERPRINTS, Run
from otel_reliability.recording import FinalSeen
from otel_reliability.reference import pinned_by
from otel_reliability.report import badge, json, junit, terminal
from otel_reliability.report.build import MAX_RUNS_FOR_INTERVALS, report_of
from otel_reliability.report.changes import detected, since
from otel_reliability.report.text import agent_name, count, listed
from otel_reliability.report.view import AgentView, ReportView
from otel_reliability.report.words import coverage
from otel_reliability.stores.table import STORES, client_of
from otel_reliability.stores.write_back import WRITERS, scores_of

ALWAYS: Final = 1 << 62
NO_SCORE: Final = 3
"""Exit code of a badge without a score: data is missing, as in a gate."""


@click.command("report")
@form("terminal", "json", "html", "markdown", "junit", "badge", "badge-svg", "badge-json")
@baseline_option("Show what changed since this recording; repeatable.")
@click.option(
    "--by",
    type=click.Choice(FINGERPRINTS),
    help=(
        "Report the runs of each model, version, system prompt, tool definitions or "
        "instrumentation apart, and compare them."
    ),
)
@click.option(
    "--intervals/--no-intervals",
    default=None,
    help=(
        "Compute 95 % intervals; the default is to do so for agents of up to "
        f"{MAX_RUNS_FOR_INTERVALS:,} runs."
    ),
)
@click.option(
    "--details",
    is_flag=True,
    help="On a terminal: every number, table and task too, and how to add what is missing.",
)
@click.option(
    "--trust",
    type=click.FloatRange(0, 100),
    metavar="SCORE",
    help="In badges: your own trust score, 0 to 100.",
)
@click.option(
    "--scores",
    type=click.Choice([*WRITERS]),
    help="Write the path distance and retries of each run to its trace in this store too.",
)
@of_recordings
def command(
    choice: Choice,
    form: str,
    baseline: tuple[str, ...],
    by: str | None,
    intervals: bool | None,
    details: bool,
    trust: float | None,
    scores: str | None,
) -> None:
    """Print a scorecard of each agent in a recording: the verdict, why, and what to do next; with
    --details every metric with the runs behind it, and the data that is missing.

    \b
      otel-reliability report spans.jsonl
      otel-reliability report --details spans.jsonl
      otel-reliability report --local                       sessions of coding agents on this machine
      otel-reliability report --agent support --since 24h spans.jsonl.gz
      otel-reliability report --baseline last-week.jsonl this-week.jsonl
      otel-reliability report --by model spans.jsonl
      otel-reliability report --format html spans.jsonl > report.html
      otel-reliability report --format json spans.jsonl | jq '.agents[] | {agent, verdict, success_rate, score}'
      otel-reliability report --format badge --trust 94 spans.jsonl      ✅ SECURED 94/100 | 🟢 STABLE 87/100

    The window is the whole recording, or the newest 100,000 runs of an agent, unless --window says
    otherwise. badge-svg is a picture of one agent's badge, badge-json the JSON of a shields.io
    endpoint; badges exit 3 where there is no score.
    """
    if by and baseline:
        raise click.UsageError("--by compares the groups of one recording; leave out --baseline.")
    is_badge = form.startswith("badge")
    observations = Observations()
    runs: list[Run] = []
    final = _final(None if by else observations, runs if scores else None)
    recording = read(choice, final=final, split_by=by, allow_empty=is_badge)
    earlier = read(choice, baseline) if baseline else None
    changes = detected(
        since(observations, choice.since_ns),
        choice.settings.change,
        pinned_by(choice.settings),
        samples=recording.samples_by_agent(choice.since_ns),
    )
    report = report_of(
        recording,
        choice.agents,
        choice.since_ns,
        max_runs_for_intervals=0
        if is_badge
        else MAX_RUNS_FOR_INTERVALS
        if intervals is None
        else ALWAYS * intervals,
        changes={finding.key: finding.change for finding in changes},
        earlier=earlier,
        split=by is not None,
        for_people=form in {"terminal", "html"},
    )
    _write_scores(scores, [run for run in runs if run.end_ns >= choice.since_ns], report)
    if is_badge:
        write(_badges(report, form, trust))
        return
    match form:
        case "json":
            for piece in json.pieces(report):
                write(piece)
        case "html":
            from otel_reliability.ui import report_file  # noqa: PLC0415  the other formats need no pages

            write(report_file.render(report, choice.settings.ui.trace_url))
        case "markdown":
            from otel_reliability.report import markdown  # noqa: PLC0415  the other formats need no templates

            write(markdown.render(report))
        case "junit":
            write(junit.render(report))
        case _:
            show(
                lambda console: terminal.render(
                    report, console, details=details, source=choice.source
                )
            )


def _final(observations: Observations | None, runs: list[Run] | None) -> FinalSeen:
    """Return what hands final runs to those of these that are there."""

    def seen(found: list[Run]) -> None:
        if observations is not None:
            observations.add(found)
        if runs is not None:
            runs.extend(found)

    return seen


def _write_scores(store: str | None, runs: Sequence[Run], report: ReportView) -> None:
    if store is None:
        return
    keys = {agent.key for agent in report.agents}
    distances = {run: far for agent in report.agents for run, far in agent.distances.items()}
    found = scores_of([run for run in runs if run.key in keys], distances)
    WRITERS[store](client_of(STORES[store], os.environ), found)
    print(f"{count(len(found), 'score')} written to {store}.", file=sys.stderr)


def _badges(report: ReportView, form: str, trust: float | None) -> str:
    """Return a line for each agent, or the picture of the only one."""
    agents = report.agents
    if not agents:
        sys.exit(_no_badge("there are no agent runs"))
    if form == "badge" and len(agents) > 1:
        return "".join(f"{agent_name(agent.key)}: {_text(agent, trust)}\n" for agent in agents)
    if len(agents) > 1:
        names = listed(agent_name(agent.key) for agent in agents)
        raise ConfigurationError(
            "--agent", None, "one agent, which a badge is of", f"choose one of {names}"
        )
    [agent] = agents
    if agent.badge is None:
        sys.exit(_no_badge(agent.score_note))
    if form == "badge":
        return f"{_text(agent, trust)}\n"
    what = (
        agent.score,
        trust,
        agent_name(agent.key),
        coverage(agent),
        badge.success_half(agent.metrics.__getitem__),
    )
    return badge.svg(*what) if form == "badge-svg" else f"{badge.endpoint(*what)}\n"


def _text(agent: AgentView, trust: float | None) -> str:
    if agent.badge is None:
        return f"no score ({agent.score_note})"
    return badge.text(
        agent.score, trust, coverage(agent), badge.success_half(agent.metrics.__getitem__)
    )


def _no_badge(why: str) -> int:
    print(f"otel-reliability: no score, so no badge: {why}.", file=sys.stderr)
    return NO_SCORE
