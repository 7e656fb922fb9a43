"""Checkpoints that another process writes: the writer goes on meanwhile, and whatever becomes of that process, all is kept."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from otel_reliability.service import apart, checkpoint_store, checkpoints
from otel_reliability.service import journal_codec as codec
from otel_reliability.service.checkpoint_store import CheckpointStore
from otel_reliability.service.journal_sqlite import Sqlite
from otel_reliability.service.journal_store import Store
from otel_reliability.testing import FakeClock
from tests.real.waiting import until
from tests.service.keeping import Kept, request
from tests.service.running import body_of, run_of, serving

RUNS = 40


def lived(path: Path, *, apart: bool = True, least: int = 10**9) -> Kept:
    """State with closed and open runs; no checkpoint is due."""
    kept = Kept(path, least=least, apart=apart)
    for trace in range(1, RUNS + 1):
        kept.take(request(trace))
        kept.wind(1.0)
    return kept


def made_due(kept: Kept) -> None:
    """From now on a checkpoint is due whenever there is anything since the last."""
    kept.journal._least = 1


def written(kept: Kept) -> None:
    """Wait until the checkpoint under way is done, and known to be."""
    until(lambda: (kept.wind(0.0), not kept.journal.checkpoints.under_way)[1], "the checkpoint to be written")


def point(path: Path) -> int | None:
    """The entry after which the checkpoint on disk was made."""
    store = CheckpointStore(path / "checkpoint.db")
    found = store.point()
    store.close()
    return None if found is None else found.seq


def test_what_comes_while_one_is_written_is_not_in_it_and_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of the moment at which it began is written; a restart takes what came since from the journal."""
    goes_on, core_of = tmp_path / "goes on", checkpoints.core_of

    def waiting(*given: Any) -> bytes:
        until(goes_on.exists, "all to have come")
        return core_of(*given)

    monkeypatch.setattr(checkpoints, "core_of", waiting)
    kept, twin = lived(tmp_path / "kept"), lived(tmp_path / "twin", apart=False)
    made_due(kept)
    for one in (kept, twin):
        one.wind(0.5)
        for trace in range(100, 120):
            one.take(request(trace))
        one.wind(0.5)
    assert kept.journal.checkpoints.under_way
    kept.journal._least = 10**9
    goes_on.touch()
    written(kept)

    kept = kept.again()
    assert kept.journal.restored == 20
    kept.settle()
    twin.wind(0.0)
    twin.settle()
    assert kept.look().windows == twin.look().windows
    assert len(kept.run_ids()) == RUNS + 20


def test_entries_go_once_they_are_covered_and_not_before(tmp_path: Path) -> None:
    """While the checkpoint is being written all of them are there."""
    kept = lived(tmp_path)
    made_due(kept)
    kept.wind(0.0)
    kept.journal._least = 10**9
    before = Store(tmp_path / "journal.db")
    assert len(list(before.entries(0))) >= RUNS
    written(kept)
    until(lambda: (kept.wind(0.0), len(list(before.entries(0))) < 5)[1], "the entries to go")
    before.close()
    covered = point(tmp_path)
    assert covered is not None
    assert covered > RUNS


@pytest.mark.parametrize("dies", ["before it writes", "within its transaction"])
def test_a_writer_of_checkpoints_that_dies_costs_nothing(
    dies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last checkpoint stays, entries stay, another is tried, and what was changed is in that."""
    kept = lived(tmp_path)
    kept.journal.checkpoints.write(kept.point())
    first = point(tmp_path)
    kept.take(request(200))

    def die(*_: object) -> None:
        os.kill(os.getpid(), 9)

    with monkeypatch.context() as patched:
        if dies == "before it writes":
            patched.setattr(checkpoints, "core_of", die)
        else:
            patched.setattr(checkpoint_store.CheckpointStore, "_statements", dying_at_the_end(die))
        made_due(kept)
        kept.wind(0.0)
        until(lambda: (kept.wind(0.0), not kept.journal.checkpoints.under_way)[1], "the other process to be gone")
    assert point(tmp_path) == first

    kept.wind(11.0)
    written(kept)
    assert point(tmp_path) != first
    kept = kept.again()
    kept.settle()
    assert len(kept.run_ids()) == RUNS + 1


def dying_at_the_end(die: Callable[..., None]) -> Callable[..., object]:
    """Statements after the last of which a process dies: all is written, and nothing committed."""
    statements = checkpoint_store.CheckpointStore._statements

    def dying(*given: object) -> object:
        yield from statements(*given)  # type: ignore[arg-type]
        die()

    return dying


def ends(*_: object) -> None:
    """The life of a process that cannot live."""
    os._exit(1)


def hangs(*_: object) -> None:
    """That of one that does nothing."""
    threading.Event().wait()


def test_after_two_failures_the_writer_writes_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no memory for another process, a pause is better than a journal that fills the disk."""
    kept = lived(tmp_path)
    made_due(kept)
    monkeypatch.setattr(apart, "_work", ends)
    for _ in range(2):
        kept.wind(11.0)
        until(lambda: (kept.wind(0.0), not kept.journal.checkpoints.under_way)[1], "the other process to be gone")
        assert point(tmp_path) is None
    kept.wind(11.0)
    assert point(tmp_path) is not None
    assert not kept.journal.checkpoints.under_way


def test_where_no_process_can_be_begun_entries_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is tried again."""
    kept = lived(tmp_path)
    made_due(kept)

    def fork() -> int:
        raise OSError("no more processes")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fork", fork)
        kept.wind(0.0)
    assert point(tmp_path) is None
    kept.wind(11.0)
    written(kept)
    assert point(tmp_path) is not None


def test_one_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten minutes."""
    kept = lived(tmp_path)
    made_due(kept)
    monkeypatch.setattr(apart, "_work", hangs)
    kept.wind(0.0)
    assert kept.journal.checkpoints.under_way
    monkeypatch.setattr(checkpoints, "PATIENCE", 0.0)
    kept.wind(0.0)
    assert not kept.journal.checkpoints.under_way
    assert point(tmp_path) is None


def test_an_orphan_writes_nothing(tmp_path: Path) -> None:
    """Whoever took over the directory meanwhile need not reckon with a checkpoint by one who is gone."""
    kept = lived(tmp_path)
    store = CheckpointStore(tmp_path / "checkpoint.db")
    now = kept.point()
    with pytest.raises(checkpoint_store.Abandoned):
        store.put(checkpoint_store.Checkpoint(now, b"core", ()), [], lambda: False)
    assert store.point() is None
    store.close()


def test_the_end_does_not_wait_for_one_under_way(tmp_path: Path) -> None:
    """It is given up, and a last one written with everything."""
    kept = lived(tmp_path)
    made_due(kept)
    kept.wind(0.0)
    kept.take(request(300))
    kept.journal.close()

    kept = Kept(tmp_path, kept.fake)
    assert kept.journal.restored == 0
    kept.settle()
    assert len(kept.run_ids()) == RUNS + 1


def test_only_agents_that_changed_are_written_anew(tmp_path: Path) -> None:
    """The others' rows stay as they are."""
    kept = lived(tmp_path, apart=False)
    kept.settle()
    kept.journal.checkpoints.write(kept.point())
    with closing(sqlite3.connect(tmp_path / "checkpoint.db")) as database, database:
        database.execute("UPDATE agent SET runs = 777")
    kept.take(request(901, agents=1))
    kept.settle()
    made_due(kept)
    kept.take(request(902, agents=1))
    kept.wind(0.0)

    with closing(sqlite3.connect(tmp_path / "checkpoint.db")) as database:
        runs = [number for (number,) in database.execute("SELECT runs FROM agent ORDER BY runs")]
    assert runs == [RUNS // 3 + 1, 777, 777]
    kept = kept.again()
    kept.settle()
    assert len(kept.run_ids()) == RUNS + 2


def test_agents_that_an_earlier_version_wrote_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each under the bytes that it is found by from now on, though nothing of it has changed since."""
    kept = lived(tmp_path, apart=False)
    kept.settle()
    with monkeypatch.context() as before:
        before.setattr(codec, "VERSION", 1)
        kept.journal.checkpoints.write_all(kept.point())

    kept = kept.again()
    kept.take(request(901, agents=1))
    kept.settle()
    kept.journal.checkpoints.write(kept.point())
    kept = kept.again()
    kept.settle()

    assert len(kept.run_ids()) == RUNS + 1


def test_a_service_goes_on_while_its_checkpoints_are_written(tmp_path: Path) -> None:
    """Both its doors, with the threads of their libraries, and whoever scrapes it."""
    with serving(state=str(tmp_path)) as running:
        journal = running.service.journal
        assert isinstance(journal, Sqlite)
        journal._least = 1
        begun: set[int] = set()
        for trace in range(1, 61, 2):
            running.call(body_of(run_of(trace, start=float(trace))))
            assert running.post("traces", body_of(run_of(trace + 1, start=float(trace)))).status == 200
            running.clock.advance(1.0)
            running.writer_came_round()
            assert running.get("metrics", "/metrics").status == 200
            begun.add(journal._covered)

        def another_is_written() -> bool:
            running.clock.advance(1.0)
            running.writer_came_round()
            begun.add(journal._covered)
            return len(begun) > 1

        until(another_is_written, "a checkpoint to be written")
        running.settle()
        assert running.sum("agent_reliability_runs_total") == 60

    kept = Kept(tmp_path, FakeClock(1e6))
    kept.settle()
    assert sum(kept.engine.closed.values()) == 60
    kept.die()
