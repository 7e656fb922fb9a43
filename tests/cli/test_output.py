"""Pages in terminals whose encoding lacks what they are drawn with."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from otel_reliability.cli.output import PLAIN, plainly
from otel_reliability.report import terminal
from otel_reliability.report.spark import EMPTY, FILLED, REST, STEPS
from tests.report.build import report, runs

SPANS = [*runs("fetch fetch fetch fetch read", failed="fetch"), *runs(*["fetch read", "read"] * 6, first=2)]


def drawn(tmp_path: Path, encoding: str) -> list[str]:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, errors=PLAIN, write_through=True) as file:
        terminal.render(report(tmp_path, SPANS), Console(file=file, width=100, color_system=None))
        return raw.getvalue().decode(encoding).splitlines()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_columns_stay_columns_without_the_signs_of_charts(tmp_path: Path, encoding: str) -> None:
    whole, plain = drawn(tmp_path, "utf-8"), drawn(tmp_path, encoding)

    assert [cell_len(line) for line in plain] == [cell_len(line) for line in whole]
    assert not any("?" in line for line in plain)


def test_what_charts_tell_is_told_in_ascii_too(tmp_path: Path) -> None:
    assert STEPS.encode("ascii", PLAIN) == b"12345678"
    assert (FILLED + REST + EMPTY).encode("ascii", PLAIN) == b"#.."
    assert any("############" in line for line in drawn(tmp_path, "ascii"))


def test_only_what_cannot_be_written_is_replaced() -> None:
    with pytest.raises(UnicodeDecodeError):
        plainly(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"))
