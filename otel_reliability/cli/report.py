"""`otel-reliability report`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import click
from rich.console import Console

from otel_reliability.change.recording import Observations
from otel_reliability.cli.options import COUNT, Choice, of_recordings
from otel_reliability.cli.output import show, write
from otel_reliability.cli.reading import read, recording_of
from otel_reliability.config import Settings
from otel_reliability.pages.course import recorded_course
from otel_reliability.reference import pinned_by
from otel_reliability.report import before_after, json, junit, markdown, terminal
from otel_reliability.report.beside import Beside
from otel_reliability.report.changes import judged, since
from otel_reliability.report.comparison import Comparison, compare
from otel_reliability.report.report import INTERVALS_UP_TO, Report, report_of
from otel_reliability.report.scorecard import Scorecard

ALWAYS: Final = 1 << 62


@click.command("report")
@click.option(
    "--format",
    "form",
    type=click.Choice(("terminal", "json", "markdown", "junit", "html")),
    default="terminal",
    show_default=True,
    help="How to write it.",
)
@click.option(
    "--baseline", multiple=True, metavar="OLD", help="An earlier recording: show what changed since; repeatable."
)
@click.option(
    "--detailed", callback=COUNT, default=terminal.DETAILED, metavar="N", help="Agents told in full on a terminal."
)
@click.option(
    "--intervals/--no-intervals",
    default=None,
    help=f"Intervals at 95 % confidence; unasked, for agents of up to {INTERVALS_UP_TO:,} runs.",
)
@of_recordings
def command(choice: Choice, form: str, baseline: tuple[str, ...], detailed: int, intervals: bool | None) -> None:
    """A scorecard of each agent in a recording: score, tier, every metric with the runs behind it, why it is so, and what
    evidence would tell more.

    \b
      otel-reliability report spans.jsonl
      otel-reliability report --agent support --since 24h spans.jsonl.gz
      otel-reliability report --baseline last-week.jsonl this-week.jsonl
      otel-reliability report --format html spans.jsonl > report.html
      otel-reliability report --format json spans.jsonl | jq '.agents[] | {agent, score, tier}'

    The window is the whole recording, or the newest 100,000 runs of an agent, unless --window says otherwise.
    """
    most = INTERVALS_UP_TO if intervals is None else ALWAYS * intervals
    units = Observations()
    recording = recording_of(choice, units.add)
    report = report_of(recording, choice.agents, choice.since_ns, most_for_intervals=most)
    comparison = _comparison(report, baseline, choice, most)
    findings = judged(since(units.found(), choice.since_ns), choice.settings.change, pinned_by(choice.settings))
    if form == "html":
        from otel_reliability.pages import report_file  # noqa: PLC0415  the other forms need no templates

        write(report_file.render(recording, report, findings, comparison))
    else:
        changes = {finding.key: finding for finding in findings if finding.key is not None}
        _write(report, comparison, form, detailed, Beside(changes, partial(_course_of, settings=report.settings)))


def _course_of(card: Scorecard, settings: Settings) -> Sequence[float]:
    return [point.score for point in recorded_course(card.rows, settings)]


def _comparison(report: Report, baseline: tuple[str, ...], choice: Choice, most: int) -> Comparison | None:
    """With all of the earlier recording: `--since` is about the new one."""
    if not baseline:
        return None
    earlier = read(baseline, choice.settings, quiet=choice.quiet)
    return compare(report_of(earlier, most_for_intervals=most), report)


def _write(report: Report, comparison: Comparison | None, form: str, detailed: int, beside: Beside) -> None:
    match form:
        case "json":
            for piece in json.pieces(report, comparison, beside):
                write(piece)
        case "markdown":
            write(markdown.render(report, comparison, beside))
        case "junit":
            write(junit.render(report))
        case _:
            show(lambda console: _on_terminal(report, comparison, console, detailed, beside))


def _on_terminal(
    report: Report, comparison: Comparison | None, console: Console, detailed: int, beside: Beside
) -> None:
    if comparison is None:
        terminal.render(report, console, detailed, beside)
    else:
        before_after.render(comparison, console)
