"""Numbers of two doors, compared one by one."""

from __future__ import annotations

from pathlib import Path

from otel_reliability.demo.agreement import agreement, recorded
from otel_reliability.demo.bookshop import record
from otel_reliability.demo.scrape import Samples
from otel_reliability.model.run import Run
from otel_reliability.report.recording import REPORT_SETTINGS, Recording


def numbers_of(path: Path, leave_out: int = 0) -> Samples:
    """What the recording tells; without some of its runs, as if they had not been counted."""
    runs: list[Run] = []
    recording = Recording(REPORT_SETTINGS, settled=runs.extend)
    recording.read(path)
    return recorded(recording.close(), runs[leave_out:])


def test_doors_that_disagree_are_found_out(tmp_path: Path) -> None:
    """A number that was changed, one that is missing, one too many, a run that was not counted."""
    record(tmp_path / "spans", 7)
    told = numbers_of(tmp_path / "spans")
    first, second, *_ = (series for series in told if series[0] == "agent_reliability_path_entropy")
    added = ("agent_reliability_score", frozenset({("gen_ai_agent_name", "nobody")}))
    broken = {**told, first: -1.0, added: 50.0}
    del broken[second]

    assert agreement(told, told).differing == []
    found = {(live, recorded is None) for _, live, recorded in agreement(broken, told).differing}
    assert found == {(-1.0, False), (None, False), (50.0, True)}
    assert agreement(told, numbers_of(tmp_path / "spans", leave_out=1)).differing


def test_what_only_a_running_service_knows_is_not_compared(tmp_path: Path) -> None:
    """Its own numbers, its histograms, and when it noticed a change."""
    record(tmp_path / "spans", 7)
    told = numbers_of(tmp_path / "spans")
    nobody: frozenset[tuple[str, str]] = frozenset()
    others = ("otel_reliability_ready", "agent_reliability_changes_total", "agent_reliability_run_score_count")
    live = {**told, **{(name, nobody): 1.0 for name in others}}

    assert agreement(live, told) == agreement(told, told)
