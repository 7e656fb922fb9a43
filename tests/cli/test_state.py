"""`otel-reliability state` shows what a directory holds, and changes nothing."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from otel_reliability.cli.app import app
from tests.service.keeping import Kept, request


def state(path: Path) -> tuple[int, str]:
    """The exit code, and all that is printed."""
    result = CliRunner().invoke(app, ["state", str(path)])
    return result.exit_code, result.output


def test_it_tells_what_is_kept_while_the_service_runs(tmp_path: Path) -> None:
    """Requests since the checkpoint, and the runs of each agent in it."""
    kept = Kept(tmp_path)
    for trace in range(1, 5):
        kept.take(request(trace, agents=1))
    code, told = state(tmp_path)
    assert code == 0
    assert "4 requests" in told
    assert "none yet" in told

    kept.settle()
    kept.journal.close()
    code, told = state(tmp_path)
    assert "0 requests" in told
    assert "4 runs" in told
    assert "agent 0" in told


def test_it_names_what_was_set_aside(tmp_path: Path) -> None:
    """A damaged journal is named until somebody takes it away."""
    (tmp_path / "journal.db").write_bytes(b"garbage" * 1_000)
    Kept(tmp_path).journal.close()
    assert "journal.db.damaged-" in state(tmp_path)[1]


def test_a_directory_without_a_journal_is_bad_usage(tmp_path: Path) -> None:
    """It exits 2 and says what is missing."""
    code, _ = state(tmp_path)
    assert code == 2
