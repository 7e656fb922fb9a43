"""Files → a recording, with a progress bar on a terminal, and a report of what could not be read by file, line and reason."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from otel_reliability.cli.options import Choice
from otel_reliability.config import Settings
from otel_reliability.report.recording import BatchSeen, FinalSeen, Recording
from otel_reliability.report.text import clean, count
from otel_reliability.sources.batch import Malformed

NAMED: Final = 20
"""Problems that are printed one by one; all are counted."""
NOTHING_READ: Final = 1
"""The exit code where there was input and none of it could be read."""


class Problems:
    """Report of what could not be read, on standard error."""

    def __init__(self) -> None:
        self.seen = 0

    def report(self, problem: Malformed) -> None:
        """Print it, unless too many were printed already."""
        self.seen += 1
        if self.seen <= NAMED:
            print(f"{problem.place}: {problem.reason.value}: {problem.detail}", file=sys.stderr)

    def sum_up(self, recording: Recording) -> None:
        """Print how many there were, by reason."""
        if self.seen:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in recording.problems.most_common())
            what = "line or span" if self.seen == 1 else "lines or spans"
            print(f"{self.seen:,} {what} could not be read ({reasons}).", file=sys.stderr)
        for (attribute, reason), number in sorted(recording.engine.refused_evidence.items()):
            print(f"{clean(attribute)}: refused {count(number, 'time')} ({reason}).", file=sys.stderr)


def recording_of(choice: Choice, final: FinalSeen | None = None, split_by: str | None = None) -> Recording:
    """Read what was chosen. Exits 1 if there was something and none of it could be read."""
    return read(choice.files, choice.settings, quiet=choice.quiet, final=final, split_by=split_by)


def read(
    files: Sequence[str],
    settings: Settings,
    *,
    quiet: bool = False,
    final: FinalSeen | None = None,
    batches: BatchSeen | None = None,
    split_by: str | None = None,
) -> Recording:
    """The recording that these files are together."""
    problems = Problems()
    recording = Recording(settings, problem=problems.report, final=final, batches=batches, split_by=split_by)
    with _progress(disable=quiet or not sys.stderr.isatty()) as progress:
        recording.read_all(files, lambda file: _updating(progress, progress.add_task(_title(file), total=None)))
        progress.add_task("rebuilding the runs", total=None)
        recording.close()
    problems.sum_up(recording)
    if problems.seen and recording.spans["received"] == recording.spans["malformed"]:
        print("otel-reliability: nothing could be read.", file=sys.stderr)
        sys.exit(NOTHING_READ)
    return recording


def _progress(*, disable: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=disable,
    )


def _updating(progress: Progress, task: TaskID) -> Callable[[int, int | None], None]:
    def update(done: int, total: int | None) -> None:
        progress.update(task, completed=done, total=total)

    return update


def _title(file: str | os.PathLike[str] | None) -> str:
    if file is None:
        return "scanning for the ends of traces"
    return "standard input" if file == "-" else clean(Path(file).name, 30).replace("[", "\\[")
