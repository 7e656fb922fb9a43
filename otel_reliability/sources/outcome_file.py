"""A CSV file of outcomes that became known after their runs.

Its columns are `success`, one or more of `trace_id`, `run_id`, `session_id` and `key`, of which
each line fills one, and perhaps `time`. Other columns are ignored.
"""

from __future__ import annotations

import csv

from otel_reliability.errors import SourceError
from otel_reliability.model.outcomes import FIELDS, SUCCESS, BadOutcome, read_outcome
from otel_reliability.model.span import Evaluation


def read_outcomes(path: str, now_ns: int) -> list[Evaluation]:
    """Return the outcomes of a file. Of lines without a time that name one run, the last counts.
    Raise `SourceError` if the file cannot be read, or a line is no outcome.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # noqa: PTH123 (`-` is none)
            table = csv.DictReader(file)
            columns = set(table.fieldnames or ())
            if SUCCESS not in columns or columns.isdisjoint(FIELDS):
                raise SourceError(
                    f"{path} has no outcomes: its first line must name {SUCCESS} and one of "
                    f"{', '.join(FIELDS)}"
                )
            return [
                _outcome(row, f"{path}:{table.line_num}", now_ns + at)
                for at, row in enumerate(table)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error


def _outcome(row: dict[str, str], place: str, now_ns: int) -> Evaluation:
    try:
        return read_outcome(row, now_ns)
    except BadOutcome as error:
        raise SourceError(f"{place}: {error}") from None
