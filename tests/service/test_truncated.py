"""Files of a journal that were cut off or changed on the disk: what can be read is taken over, and nothing else is made of it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_reliability.model.run import CloseReason
from otel_reliability.service.checkpoint_store import CheckpointStore
from otel_reliability.service.journal import Unavailable
from otel_reliability.service.journal_codec import Damaged, check
from otel_reliability.service.journal_file import WrongJournal
from otel_reliability.service.journal_store import DAMAGED, REQUEST, Store
from tests.service.keeping import Kept, request

RUNS: Final = 40
"""Runs of which a checkpoint tells, and as many after it."""
PAGE: Final = 4_096
LOG: Final = "journal.db-wal"
FILES: Final = ("journal.db", LOG, "checkpoint.db")
CUTS: Final = range(1, PAGE + 1)
"""Bytes that are cut off: as many as the last page has."""
OFFSETS: Final = [
    sorted({1, 2, 23, 24, 25, PAGE - 1, PAGE, *random.Random(8).sample(CUTS, 6)}),
    pytest.param(list(CUTS), marks=pytest.mark.soak),
]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a process leaves that was killed: a checkpoint, and entries since."""
    path = tmp_path_factory.mktemp("journal")
    kept = Kept(path, least=10**9)
    for trace in range(1, RUNS + 1):
        kept.take(request(trace))
    kept.settle()
    kept.journal.checkpoints.write(kept.point())
    for trace in range(RUNS + 1, 2 * RUNS + 1):
        kept.take(request(trace))
    kept.die()
    found = tmp_path_factory.mktemp("killed") / "state"
    shutil.copytree(path, found)  # while it is open: whoever closes it pours the log into the file
    yield found
    del kept


@pytest.fixture(scope="module")
def merged(journal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same when SQLite has poured the log into the file."""
    path = tmp_path_factory.mktemp("merged") / "state"
    shutil.copytree(journal, path)
    Store(path / "journal.db").close()
    assert not (path / LOG).exists()
    return path


def cut(path: Path, to: Path, name: str, number: int) -> Path:
    """A copy, of which a file lacks its last bytes."""
    shutil.copytree(path, to)
    with (to / name).open("r+b") as file:
        file.truncate(max(0, (to / name).stat().st_size - number))
    return to


def sent(runs: list[str]) -> list[int]:
    """The numbers of the traces of some runs."""
    return sorted(int(run_id[:32], 16) for run_id in runs)


def told(kept: Kept) -> list[int]:
    """Every run that is there once all are closed, by trace."""
    kept.settle()
    kept.engine.flush(CloseReason.SHUTDOWN)
    return sent(kept.run_ids())


def entries_of(path: Path) -> list[int] | None:
    """The numbers of the requests that a journal still has; None where it is not to be read to its end."""
    try:
        store = Store(path)
    except (WrongJournal, Unavailable):
        return None
    found: list[int] = []
    try:
        for entry in store.entries(0):
            if entry.kind == DAMAGED:
                return None
            if entry.kind == REQUEST:
                check(entry.body)
                found.append(entry.seq)
    except (WrongJournal, Damaged):
        return None
    finally:
        damage = store.damage
        store.close()
    return None if damage else found


def checkpoint_of(path: Path) -> list[bytes] | None:
    """All that a file of checkpoints has; None where it is not to be read to its end."""
    try:
        store = CheckpointStore(path)
    except (WrongJournal, Unavailable):
        return None
    try:
        found = [store.core(), *(row.body for row in store.agents())]
        for body in found:
            check(body)
    except (WrongJournal, Damaged):
        return None
    finally:
        damage = store.damage
        store.close()
    return None if damage else found


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("cuts", OFFSETS, ids=["some", "every"])
def test_what_is_read_of_a_file_that_was_cut_is_true(
    name: str, cuts: list[int], journal: Path, merged: Path, tmp_path: Path
) -> None:
    """At every byte of its last page: of a log all but the last commit, of a file everything, or nothing."""
    source = journal if name == LOG else merged
    read, main = (checkpoint_of, name) if name == "checkpoint.db" else (entries_of, "journal.db")
    whole = read(cut(source, tmp_path / "whole", name, 0) / main)
    assert whole
    expected = [whole[:-1]] if name == LOG else [None, whole]
    bodies = {file: (source / file).read_bytes() for file in {main, name}}
    for number in cuts:
        for file in (f"{main}-wal", f"{main}-shm"):
            (tmp_path / file).unlink(missing_ok=True)
        for file, body in bodies.items():
            (tmp_path / file).write_bytes(body[:-number] if file == name else body)
        assert read(tmp_path / main) in expected


def starts(path: Path) -> list[int]:
    """A service starts on a directory, takes a request, and starts again. Gives the runs of the others that it knows."""
    kept = Kept(path)
    assert kept.take(request(5_000))
    kept = kept.again()
    assert kept.journal.lost == 0
    runs = told(kept)
    kept.die()
    assert runs.count(5_000) == 1
    return [run for run in runs if run != 5_000]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("cuts", OFFSETS, ids=["some", "every"])
def test_a_service_starts_on_whatever_is_left(
    name: str, cuts: list[int], journal: Path, merged: Path, tmp_path: Path
) -> None:
    """It has every run but those that were cut off, none twice, tells what was damaged, and takes requests."""
    for number in cuts:
        path = cut(journal if name == LOG else merged, tmp_path / str(number), name, number)
        runs = starts(path)
        assert runs == sorted(set(runs))
        if name == LOG:
            assert runs == list(range(1, 2 * RUNS))
        else:
            assert set(runs) <= set(range(1, 2 * RUNS + 1))
            assert len(runs) == 2 * RUNS or list(path.glob("journal.db.damaged-*"))
        if name == "checkpoint.db":
            assert set(runs) >= set(range(RUNS + 1, 2 * RUNS + 1))
        if name == "journal.db":
            assert set(runs) >= set(range(1, RUNS + 1))
        shutil.rmtree(path)


@example(name="checkpoint.db", place=0.0859375, bits=128)  # a text that is none, in what says how tables look
@given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_matters_to_nobody(
    name: str,
    place: float,
    bits: int,
    journal: Path,
    merged: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """All is as it was, or the files are set aside, or a log ends before it. No run is made up, or twice."""
    path = cut(journal if name == LOG else merged, tmp_path_factory.mktemp("changed") / "state", name, 0)
    body = bytearray((path / name).read_bytes())
    body[int(place * len(body))] ^= bits
    (path / name).write_bytes(body)

    runs = starts(path)
    assert runs == sorted(set(runs))
    assert set(runs) <= set(range(1, 2 * RUNS + 1))
    if name == LOG:
        assert runs == list(range(1, len(runs) + 1))
    elif not list(path.glob("*.damaged-*")):
        assert runs == list(range(1, 2 * RUNS + 1))
    shutil.rmtree(path)
