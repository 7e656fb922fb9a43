"""Files → a recording, with a progress bar on a terminal, and a report of what could not be read by
file, line and reason.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from otel_reliability.cli.options import Choice
from otel_reliability.recording import BatchSeen, FinalSeen, Recording
from otel_reliability.report.text import clean, count, listed
from otel_reliability.sources.batch import Malformed, Reason

NAMED: Final = 20
"""Problems that are printed one by one; all are counted."""
MAX_PATH: Final = 300
"""Characters of a path that are printed."""
NOTHING_READ: Final = 2
"""The exit code where there was nothing to read, or none of it could be read."""


def read(
    choice: Choice,
    files: Sequence[str] | None = None,
    *,
    final: FinalSeen | None = None,
    batches: BatchSeen | None = None,
    split_by: str | None = None,
    allow_empty: bool = False,
) -> Recording:
    """Read the recordings that were chosen, or other files, as one. Exits 2 if there was input and
    none of it could be read, and, unless `allow_empty`, if there was nothing to read.
    """
    paths = choice.files if files is None else files

    def report(problem: Malformed) -> None:
        if recording.problems.total() <= NAMED:
            print(f"{problem.place}: {problem.reason.value}: {problem.detail}", file=sys.stderr)

    recording = Recording(
        choice.settings, problem=report, final=final, batches=batches, split_by=split_by
    )
    recording.report_outcomes(choice.outcomes)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    hidden = choice.quiet or not sys.stderr.isatty()
    console = Console(stderr=True)  # output that is written meanwhile must not be redirected to it
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, disable=hidden
    ) as progress:

        def begun(file: str | os.PathLike[str] | None) -> Callable[[int, int | None], None]:
            for done in progress.task_ids:  # there may be thousands of files
                progress.remove_task(done)
            task = progress.add_task(_title(file), total=None)
            return lambda done, total: progress.update(task, completed=done, total=total)

        recording.read_all(paths, begun)
        progress.add_task("rebuilding the runs", total=None)
        recording.close()
    is_named = {*recording.problems} == {Reason.KIND.value}  # one line a file says it all
    if not is_named:
        _sum_up(recording)
    if recording.problems and recording.spans["received"] == recording.spans["malformed"]:
        if not is_named:
            print("otel-reliability: nothing could be read.", file=sys.stderr)
        sys.exit(NOTHING_READ)
    if not recording.items and not recording.problems and not allow_empty:
        where = listed(
            ("standard input" if path == "-" else clean(path, MAX_PATH) for path in paths), NAMED
        )
        print(
            f"otel-reliability: nothing was read: no span, log record or session in {where}.",
            file=sys.stderr,
        )
        sys.exit(NOTHING_READ)
    return recording


def _sum_up(recording: Recording) -> None:
    """Print on standard error how much could not be read, by reason."""
    if seen := recording.problems.total():
        reasons = ", ".join(
            f"{number:,} {reason}" for reason, number in recording.problems.most_common()
        )
        what = "line or span" if seen == 1 else "lines or spans"
        print(f"{seen:,} {what} could not be read ({reasons}).", file=sys.stderr)
    for (attribute, reason), number in sorted(recording.engine.refused_attributes.items()):
        print(f"{clean(attribute)}: refused {count(number, 'time')} ({reason}).", file=sys.stderr)
    if unknown := recording.unknown_outcomes:
        what = "outcome names" if unknown == 1 else "outcomes name"
        print(f"{unknown:,} {what} no run here.", file=sys.stderr)
    if recording.repeated_prompts:
        prompts = count(recording.repeated_prompts, "prompt")
        print(f"{prompts} of session files: in the telemetry too, counted once.", file=sys.stderr)


def _title(file: str | os.PathLike[str] | None) -> str:
    if file is None:
        return "scanning for the ends of traces"
    return "standard input" if file == "-" else clean(Path(file).name, 30).replace("[", "\\[")
