from __future__ import annotations

from otel_reliability import testing
from otel_reliability.config import LimitSettings, Settings
from otel_reliability.model.run import Outcome
from otel_reliability.windows.window import measure


def test_plain_runs_are_measured_in_any_order() -> None:
    """All metrics of all families, from runs alone."""
    runs = [
        testing.run(["search", "book"], number, task_id="refund", outcome=Outcome.SUCCESS, confidence=number / 10)
        for number in range(1, 6)
    ]
    window, reverse = measure(runs), measure(reversed(runs))

    assert window.runs == 5
    assert window.reading("trajectory_sequence").value == 1.0
    assert window.reading("path_entropy").value == 0.0
    assert window.readings() == reverse.readings()


def test_the_newest_runs_are_measured() -> None:
    """Of more than the limit lets in."""
    window = measure((testing.run((), number) for number in range(5)), Settings(limits=LimitSettings(rows=2)))

    assert [row.run_id for row in window.rows()] == ["run-3", "run-4"]
