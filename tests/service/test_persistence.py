"""The journal brings state back exactly, whenever the process dies, and survives what happens to
disks.
"""

from __future__ import annotations

import fcntl
import functools
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from otel_reliability.config import SessionSettings, WindowSettings
from otel_reliability.errors import ConfigurationError
from otel_reliability.model.run import AgentKey, RunChange, RunEvent
from otel_reliability.model.span import Evaluation, Kind, ModelFacts, Subject, SubjectKind
from otel_reliability.service import persistence
from otel_reliability.service.decoded import Decoded
from otel_reliability.state import salvage, store
from otel_reliability.state.clock import Clock, Moment
from otel_reliability.state.directory import StateDirectory
from otel_reliability.telemetry.guard import Guard
from otel_reliability.testing import FakeClock, agent, agent_span, at, run, tool, trace_id
from otel_reliability.windows.sessions import Sessions
from tests.service import sample
from tests.service.keeping import SETTINGS, Kept, Look, halves, request
from tests.service.sample import life

RUNS = 60


def drive(path: Path, deaths: frozenset[int], *, twice: bool = False, seed: int = 0) -> Kept:
    """A life: runs that come in halves, out of order, with time between; the process dies at these
    steps.
    """
    order = random.Random(seed)
    parts = [part for trace in range(1, RUNS + 1) for part in halves(trace)]
    for first in range(0, len(parts) - 3, 3):
        order.shuffle(slice_ := parts[first : first + 3])
        parts[first : first + 3] = slice_
    kept = Kept(path)
    for step, part in enumerate(parts):
        kept.take(part, part) if twice else kept.take(part)
        if step in deaths:
            kept = kept.again()
        kept.wind(0.3 + step % 3)
    if twice:
        for part in parts:
            kept.take(part)
    kept.finalize()
    return kept


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[int], tuple[Look, list[AgentKey]]]:
    """By seed: what a life without a death comes to."""

    @functools.cache
    def come_to(seed: int) -> tuple[Look, list[AgentKey]]:
        twin = drive(tmp_path_factory.mktemp("twin"), frozenset(), seed=seed)
        return twin.look(), twin.engine.agents.keys()

    return come_to


class Ended(NamedTuple):
    """A life that has ended: what it came to, and the clock."""

    run_ids: list[str]
    series: dict[str, Any]
    clock: FakeClock


Ending: TypeAlias = Literal["closed", "killed", "killed with an open run"]
EndIn: TypeAlias = Callable[[Path, Ending], Ended]


@pytest.fixture(scope="module")
def end_in(tmp_path_factory: pytest.TempPathFactory) -> EndIn:
    """Makes a folder the state of a life that has ended so. It is lived once, and copied."""

    @functools.cache
    def lived(ending: Ending) -> tuple[Path, list[str], dict[str, Any], float]:
        path = tmp_path_factory.mktemp("life")
        kept = drive(path / "state", frozenset())
        if ending == "killed with an open run":
            kept.take(request(900))
        told = kept.run_ids(), kept.series(), kept.fake()
        if ending == "closed":
            kept.persistence.close()
        else:
            kept.die()
        return shutil.copytree(path / "state", path / "ended"), *told

    def end(path: Path, ending: Ending) -> Ended:
        ended, run_ids, series, now = lived(ending)
        shutil.copytree(ended, path, dirs_exist_ok=True)
        return Ended(run_ids, series, FakeClock(now))

    return end


@given(deaths=st.frozensets(st.integers(0, 2 * RUNS - 1), max_size=6), seed=st.integers(0, 3))
@examples(max_examples=8, deadline=None)
def test_whenever_the_process_dies_all_is_as_if_it_had_not(
    deaths: frozenset[int],
    seed: int,
    undisturbed: Callable[[int], tuple[Look, list[AgentKey]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Windows, readings, sessions, counters with their starts, the account of spans and the scores
    over time are those of an undisturbed twin, and agents are listed in the same order.
    """
    twin, agents = undisturbed(seed)
    kept = drive(tmp_path_factory.mktemp("kept"), deaths, seed=seed)

    assert kept.look() == twin
    assert kept.engine.agents.keys() == agents
    assert len(set(kept.run_ids())) == len(kept.run_ids()) == RUNS
    assert kept.look().open_runs == 0


@given(
    steps=st.lists(st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0)), min_size=8, max_size=40),
    waits=st.sampled_from((0.25, 1.0, 60.0)),
)
@examples(max_examples=15, deadline=None)
def test_what_was_told_before_a_death_is_told_after_it(
    steps: list[float], waits: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """At once, however time went: a counter that falls for a second looks to Prometheus as if all
    of it had come again.
    """
    settings = replace(SETTINGS, assembly=replace(SETTINGS.assembly, linger=0.25, reopen=waits))
    kept = Kept(tmp_path_factory.mktemp("kept"), settings=settings)
    for trace, seconds in enumerate(steps, start=1):
        if not seconds:
            kept.take(request(trace))
        kept.wind(seconds or 0.25)
    told = kept.look()
    again = kept.again(settings).look()

    assert again.series == told.series
    assert again == told


def test_what_is_sent_twice_counts_once(
    tmp_path: Path, undisturbed: Callable[[int], tuple[Look, list[AgentKey]]]
) -> None:
    once, _ = undisturbed(0)
    twice = drive(tmp_path, frozenset({10, 50, 51}), twice=True).look()

    assert twice.windows == once.windows
    runs = "agent.reliability.runs"
    numbers = [
        {labels: cell[0] for labels, cell in look.series[runs].items()} for look in (once, twice)
    ]
    assert numbers[0] == numbers[1]


def test_saving_waits_for_the_agents_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "READY_LOAD_S", 0.0)
    monkeypatch.setattr(persistence, "LOAD_S", 0.0)
    lives = [Kept(tmp_path / name) for name in ("kept", "twin")]
    for first in (1, 11):
        for kept in lives:
            for trace in range(first, first + 10):
                kept.take(request(trace, agents=5))
            kept.wind(40.0)
            kept.wind(700.0)
        lives[0] = lives[0].again() if first == 1 else lives[0]
    unloaded = lives[0].engine.agents.unloaded
    for kept in lives:
        for _ in range(6):
            kept.wind(1.0)

    assert unloaded == 2
    values = [
        {
            name: {labels: one[:2] for labels, one in some.items()}
            for name, some in kept.series().items()
        }
        for kept in lives
    ]
    assert values[0] == values[1]
    assert lives[0].look().windows == lives[1].look().windows
    assert lives[0].again().look() == lives[0].look()


def test_agents_are_loaded_faster_when_many_runs_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backlog is worked off in steps; to load all agents at once would hold up requests for
    minutes.
    """
    monkeypatch.setattr(persistence, "READY_LOAD_S", 0.0)
    monkeypatch.setattr(persistence, "LOAD_S", 0.0)
    kept = Kept(tmp_path)
    for first in (1, 11):
        for trace in range(first, first + 10):
            kept.take(request(trace, agents=5))
        kept.wind(40.0)
        kept.wind(100.0)
        if first == 1:
            kept = kept.again()
    assert kept.engine.agents.unloaded == 2
    monkeypatch.setattr(persistence, "MAX_WAITING", 5)
    kept.wind(1.0)

    assert kept.engine.agents.unloaded == kept.engine.waiting == 0


def test_a_run_that_is_withdrawn_and_closed_again_is_stored(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    one = run(["search"])
    final = [RunEvent(RunChange.CLOSED, one), RunEvent(RunChange.FINAL, one)]
    for events in (final, [RunEvent(RunChange.WITHDRAWN, one), *final]):
        kept.engine.receive_events(events)
        kept.wind(2.0)

    assert kept.again().run_ids() == [one.run_id]


def test_no_time_passes_while_the_process_is_down(tmp_path: Path) -> None:
    first, second = halves(1)
    kept = Kept(tmp_path)
    kept.take(first)
    kept.die()
    kept.fake.advance(7 * 86_400.0)

    kept = Kept(tmp_path, kept.fake)
    assert kept.engine.open_runs == 1
    kept.take(second)
    kept.finalize()
    assert len(kept.run_ids()) == 1
    assert kept.engine.closed == {"root": 1}


def test_a_clock_that_is_set_back_changes_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for trace in range(1, 11):
        kept.take(request(trace))
        kept.wind(1.0)
    before = kept.engine.now()
    kept.die()
    kept.fake.advance(-3_600.0)

    kept = Kept(tmp_path, kept.fake)
    assert kept.engine.now() == before
    kept.finalize()
    assert len(kept.run_ids()) == 10


def test_time_stands_still_for_the_thread_that_applies_alone() -> None:
    """Probes on other threads would else take a writer at work for one that is stuck."""
    clock = Clock(FakeClock(5.0), FakeClock(5.0).wall)
    with ThreadPoolExecutor(1) as other:
        clock.hold(Moment(1.0, 2))
        assert clock.moment() == Moment(1.0, 2)
        assert other.submit(clock).result() == 5.0
        clock.release()
    assert clock() == 5.0


class Skewed(FakeClock):
    """A clock whose Unix time can be set apart from the seconds that pass."""

    skew = 0.0

    def wall(self) -> int:
        return at(self() + self.skew)


def test_the_time_of_day_set_back_an_hour_costs_nothing(tmp_path: Path) -> None:
    kept = Kept(tmp_path, clock := Skewed(10_000.0))
    for trace in range(1, 31):
        kept.take(request(10_000 + trace))
        kept.wind(1.0)
        if trace in {10, 20}:
            clock.skew -= 3_600.0
        if trace == 20:
            before = kept.look()
            kept = kept.again()
            assert kept.look() == before
    kept.finalize()

    assert len(kept.run_ids()) == len(set(kept.run_ids())) == 30
    assert sum(kept.engine.closed.values()) == 30
    runs = kept.look().series["agent.reliability.runs"]
    assert sum(cell[0] for cell in runs.values()) == 30
    final = kept.look()
    assert kept.again().look() == final


def test_an_end_in_good_order_leaves_open_runs_open(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.take(halves(1)[0])
    kept.persistence.close()

    kept = Kept(tmp_path, kept.fake)
    assert kept.engine.open_runs == 1


def test_an_evaluation_that_came_last_survives_an_end_in_good_order(tmp_path: Path) -> None:
    """Its run is final, and neither that nor a version with it is stored yet."""
    kept = Kept(tmp_path)
    final = list[RunChange]()
    others = count(100)
    kept.engine.observers.append(lambda event, _: final.append(event.change))
    kept.take(request(1))
    while RunChange.FINAL not in final:
        kept.take(request(next(others)))
        kept.wind(0.3)
    kept.take(Decoded(evaluations=(Evaluation("success", 1.0, None, at(0), trace_id(1)),)))
    kept.persistence.close()
    kept = Kept(tmp_path, kept.fake)
    kept.wind(1.0)

    # no dictionary
    agents = [kept.engine.agents.agent(key) for key in kept.engine.agents.keys()]  # noqa: SIM118
    rows = [
        row
        for one in agents
        if one is not None
        for window in one.windows.values()
        for row in window.rows()
    ]
    assert [row.success for row in rows if row.run_id.startswith(trace_id(1).hex())] == [True]


def test_an_evaluation_is_stored_as_long_as_its_run_may_need_it(tmp_path: Path) -> None:
    """While it waits, for its trace or for its response, and however long its trace stays open;
    then its row goes.
    """
    settings = replace(
        SETTINGS, assembly=replace(SETTINGS.assembly, idle_timeout=20.0, reopen=60.0)
    )
    kept = Kept(tmp_path, settings=settings)
    places = ((trace_id(1), None, None), (trace_id(2), None, None), (None, None, "r"))
    kept.take(
        Decoded(
            evaluations=tuple(Evaluation("success", 1.0, None, at(0), *place) for place in places)
        )
    )
    for number in range(2, 12):
        kept.take(Decoded(spans=(tool(number, 1),)))
        for _ in range(3):
            kept.wind(15.0)
    kept = kept.again(settings)
    answer = agent_span(Kind.MODEL, ModelFacts(response_id="r"), 2, 1, trace=3)
    kept.take(
        Decoded(
            spans=(answer, *(agent(1, called=f"agent {trace}", trace=trace) for trace in (1, 2, 3)))
        )
    )
    kept.finalize()

    # no dictionary
    agents = [kept.engine.agents.agent(key) for key in kept.engine.agents.keys()]  # noqa: SIM118
    sources = [run.outcome_source for one in agents if one is not None for run in one.recent]
    assert sources == ["evaluation:success"] * 3
    with sqlite3.connect(tmp_path / "state.db") as db:
        assert db.execute(
            "SELECT count(*) FROM arrival WHERE kind = ?", (store.EVALUATIONS,)
        ).fetchone() == (0,)


def test_an_evaluation_of_a_run_is_known_while_no_save_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(tmp_path)
    kept.take(request(1))
    kept.finalize()
    subject = Subject(SubjectKind.TRACE, trace_id(1).hex())
    transact = store.Store.transact

    def full(self: store.Store, statements: list[store.Statement]) -> None:
        if statements[-1][0].startswith("INSERT OR REPLACE INTO saved"):
            raise store.Unavailable("state_unwritable", "the disk is full")
        transact(self, statements)

    monkeypatch.setattr(store.Store, "transact", full)
    kept.take(Decoded(evaluations=(Evaluation("success", 1.0, None, at(0), trace_id(1)),)))
    kept.wind(5.0)

    [found] = kept.engine.outcomes.stored(subject)
    assert found.outcome_source == "evaluation:success"
    monkeypatch.undo()
    kept.wind(5.0)
    assert list(kept.engine.outcomes.stored(subject)) == [found]


def test_other_settings_take_the_windows_over(tmp_path: Path, end_in: EndIn) -> None:
    ended = end_in(tmp_path, "closed")
    windows = (WindowSettings("recent", last=5), WindowSettings("week", period=7 * 86_400.0))
    other = replace(SETTINGS, windows=windows, sessions=SessionSettings(idle=5.0))

    kept = Kept(tmp_path, ended.clock, other)
    sizes = [
        {name: len(ids) for name, (ids, *_) in one.items()} for one in kept.look().windows.values()
    ]
    assert sizes == [{"recent": 5, "week": 20}] * 3
    assert kept.engine.sessions.number_open == 0


def test_the_journal_stays_bounded(tmp_path: Path) -> None:
    kept = Kept(tmp_path, settings=replace(SETTINGS, windows=(WindowSettings("recent", last=10),)))
    sizes: list[int] = []
    for trace in range(1, 601):
        kept.take(request(trace))
        kept.wind(70.0)
        if trace % 200 == 0:
            sizes.append(sum(file.stat().st_size for file in tmp_path.glob("state.db*")))
    assert sizes[-1] < 1.5 * sizes[0]


RENEWED = {
    f"agent.reliability.run.{name}" for name in ("score", "path_distance", "duration", "tokens")
}
"""Histograms that had other buckets when the samples were written: those begin again at 0."""


def raised(look: Look) -> Look:
    """Without the counters that only began: older versions began fewer of them at 0; and without
    histograms whose buckets are others now.
    """
    series = {
        name: {labels: told for labels, told in each.items() if told[0]}
        for name, each in look.series.items()
        if name not in RENEWED
    }
    return look._replace(series=series)


@pytest.mark.parametrize("path", sorted(sample.SAMPLES.iterdir()), ids=lambda path: path.name)
def test_state_of_every_released_layout_is_read(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path, tmp_path / "sample")
    expected = life(tmp_path / "life")
    kept = Kept(tmp_path / "sample", FakeClock(expected.fake()))

    assert raised(kept.look()) == raised(expected.look())
    assert kept.engine.accounts["malformed", "span_id"] == 2
    for one in (kept, expected):
        one.take(halves(sample.RUNS + 2)[1])
        one.finalize()
    assert raised(kept.look()) == raised(expected.look())
    assert len(kept.run_ids()) == sample.RUNS + 2


# --- Disks ----------------------------------------------------------------------------------------


def test_garbage_is_set_aside_once(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 1_000)
    kept = Kept(tmp_path)
    kept.take(request(1))
    kept = kept.again()

    assert len(list(tmp_path.glob("state.db.damaged-*"))) == 1
    assert kept.engine.open_runs == 1


def test_a_fault_while_state_is_brought_back_stops_no_start(
    tmp_path: Path, end_in: EndIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours would else meet every start again: what cannot be loaded begins empty, and
    spans are there all the same.
    """
    ended = end_in(tmp_path, "killed with an open run")

    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    with monkeypatch.context() as patched:
        patched.setattr(Sessions, "restore", fail)
        patched.setattr(Guard, "loud", False)
        kept = Kept(tmp_path, ended.clock)
    assert kept.engine.open_runs == 1
    assert len(kept.run_ids()) == RUNS


def test_a_damaged_entry_costs_itself_only(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for trace in (1, 2, 3):
        kept.take(request(trace))
    kept.die()
    with sqlite3.connect(tmp_path / "state.db") as database:
        database.execute("UPDATE arrival SET body = zeroblob(length(body)) WHERE seq = 2")
    database.close()

    kept = Kept(tmp_path, kept.fake)
    assert (kept.persistence.lost, kept.engine.open_runs) == (1, 2)


@pytest.mark.parametrize("damage", [bytes(4096), b"\xa5" * 4096, bytes(16)], ids=len)
@pytest.mark.parametrize("is_journal_kept", [False, True])
def test_a_database_that_lost_its_first_page_loses_no_run(
    damage: bytes, is_journal_kept: bool, tmp_path: Path, end_in: EndIn
) -> None:
    ended = end_in(tmp_path, "killed" if is_journal_kept else "closed")
    with (tmp_path / "state.db").open("r+b") as file:
        file.write(damage)

    kept = Kept(tmp_path, ended.clock)
    assert kept.run_ids() == ended.run_ids
    assert kept.series() == ended.series
    assert kept.take(request(901))
    assert not list(tmp_path.glob("state.db.headed*"))


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.35, 0.5, 0.75, 0.9, 0.99])
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "changed"])
def test_what_is_read_of_damaged_files_is_true(
    name: str, share: float, cut: bool, tmp_path: Path, end_in: EndIn
) -> None:
    ended = end_in(tmp_path, "killed with an open run")
    file = tmp_path / name
    data = file.read_bytes()
    at = int(share * len(data))
    file.write_bytes(data[:at] if cut else data[:at] + bytes(4096) + data[at + 4096 :])

    kept = Kept(tmp_path, ended.clock)
    kept.take(request(901))
    found = kept.run_ids()
    assert len(set(found)) == len(found)
    assert set(found) <= set(ended.run_ids)
    assert kept.again().engine.open_runs >= 1


def test_state_of_another_layout_is_refused_and_unchanged(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.take(request(1))
    kept.persistence.close()
    database = sqlite3.connect(tmp_path / "state.db")
    database.execute(f"PRAGMA user_version = {store.LAYOUT + 1}")
    database.close()
    before = (tmp_path / "state.db").read_bytes()

    with pytest.raises(store.OtherLayout, match="start the version that wrote it"):
        Kept(tmp_path, kept.fake)
    assert (tmp_path / "state.db").read_bytes() == before
    assert not list(tmp_path.glob("state.db.damaged-*"))


def damage(path: Path, *statements: str) -> None:
    """Run statements on the database as another program would."""
    database = sqlite3.connect(path / "state.db", isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


def number_set_aside(path: Path) -> int:
    names = [file.name for file in path.glob("state.db.damaged-*")]
    return sum(not name.endswith(("-wal", "-shm")) for name in names)


@pytest.mark.parametrize("table", ["arrival", "agent", "part", "saved"])
def test_a_missing_table_costs_no_run(table: str, tmp_path: Path, end_in: EndIn) -> None:
    ended = end_in(tmp_path, "closed")
    damage(tmp_path, f"DROP TABLE {table}")

    kept = Kept(tmp_path, ended.clock)
    assert set(kept.run_ids()) == set(ended.run_ids)
    assert number_set_aside(tmp_path) == 1


def test_nothing_counts_twice_when_it_is_lost_what_was_saved(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for trace in range(1, 11):
        kept.take(request(trace))
        kept.take(*halves(100 + trace)[:1])
        kept.wind(3.0)
    kept.persistence.close()
    before = kept.look()
    damage(tmp_path, "DROP TABLE saved")

    again = Kept(tmp_path, kept.fake)
    assert again.look().accounts == before.accounts
    assert again.look().histories == before.histories


def test_a_table_that_cannot_be_read_costs_no_run(tmp_path: Path, end_in: EndIn) -> None:
    ended = end_in(tmp_path, "closed")
    database = sqlite3.connect(tmp_path / "state.db")
    (root,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'part'").fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    with (tmp_path / "state.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes(size))

    kept = Kept(tmp_path, ended.clock)
    assert set(kept.run_ids()) == set(ended.run_ids)
    assert number_set_aside(tmp_path) == 1


@pytest.mark.parametrize("step", ["copy_table", "replace_database", "replace", "unlink"])
def test_a_death_during_a_salvage_loses_nothing(
    step: str, tmp_path: Path, end_in: EndIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step there is the damaged database, or the complete new one."""
    ended = end_in(tmp_path, "closed")
    damage(tmp_path, "DROP TABLE part")
    owner = {"copy_table": salvage, "replace_database": StateDirectory}.get(step, Path)
    is_always = step != "unlink"  # which discards an earlier salvage first
    original = getattr(owner, step)

    def die(*given: Any, **named: Any) -> Any:
        if is_always or given[0].name == "state.db-wal":
            raise KeyboardInterrupt
        return original(*given, **named)

    def unlocked(*_: int) -> None:
        """Grant the lock."""

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", unlocked)  # a process that died holds no lock
        patched.setattr(owner, step, die)
        with pytest.raises(KeyboardInterrupt):
            Kept(tmp_path, ended.clock)

    kept = Kept(tmp_path, ended.clock)
    assert set(kept.run_ids()) == set(ended.run_ids)


def test_databases_that_were_set_aside_are_never_deleted(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for _ in range(5):
        kept.persistence.close()
        damage(tmp_path, "DROP TABLE part")
        kept = Kept(tmp_path, kept.fake)
    assert number_set_aside(tmp_path) == 5


def test_a_missing_journal_is_reported(
    tmp_path: Path, end_in: EndIn, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path, end_in(tmp_path, "closed").clock)
    kept.take(request(900))
    os.close(kept.directory._lock)  # a kill releases the lock and notes nothing
    (tmp_path / "state.db-wal").unlink()

    Kept(tmp_path, kept.fake)
    assert "state.db-wal is missing" in caplog.text


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_database_that_is_deleted_under_the_service_is_written_anew(
    is_replaced: bool, tmp_path: Path
) -> None:
    """Its open files are whole, but nobody finds them after the end of the process."""
    kept = Kept(tmp_path)
    for trace in range(1, 20):
        kept.take(request(trace))
    for file in tmp_path.glob("state.db*"):
        file.unlink()
    if is_replaced:
        (tmp_path / "state.db").write_bytes(b"another")
    assert kept.take(request(20))
    kept = kept.again()

    assert kept.engine.open_runs == 20
    kept.finalize()
    assert len(kept.run_ids()) == 20


def test_a_directory_that_is_deleted_under_the_service_is_no_place_for_requests(
    tmp_path: Path,
) -> None:
    kept = Kept(tmp_path / "state")
    assert kept.take(request(1))
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    assert not kept.take(request(2))

    (tmp_path / "elsewhere").rename(tmp_path / "state")
    assert kept.take(request(2))
    assert kept.again().engine.open_runs == 2


def test_the_database_is_private_in_a_directory_that_others_can_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Kept(tmp_path).take(request(1))
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("state.db*")}
    assert set(modes.values()) == {0o600}, modes


def test_a_directory_that_the_service_makes_is_private(tmp_path: Path) -> None:
    StateDirectory(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"zz" * 32, b"ab", bytes([200] * 8)])
def test_a_key_of_hashes_that_is_none_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "hash.key").write_bytes(content)
    with pytest.raises(ConfigurationError, match="hexadecimal"):
        StateDirectory(tmp_path).key()


def test_a_missing_key_of_hashes_next_to_a_state_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path)
    kept.die()
    StateDirectory(tmp_path).key()
    assert "a new key is made" in caplog.text


def test_the_limit_of_the_journal_refuses(tmp_path: Path) -> None:
    kept = Kept(tmp_path, limit=64 * 1024)
    taken = 0
    for trace in range(1, 2_000):
        if not kept.take(request(trace)):
            break
        taken += 1
    assert 10 < taken < 1_999
    assert kept.again().engine.open_runs == taken


def test_state_at_its_limit_accepts_requests_again_once_runs_are_final(tmp_path: Path) -> None:
    """Runs that become final are saved although the limit is reached: their spans make room."""
    kept = Kept(tmp_path, limit=1 << 20)
    assert not all(
        kept.take(request(trace, ["search"] * 20, agents=1)) for trace in range(1, 2_000)
    )
    kept.finalize()
    assert kept.take(request(2_001))
    assert kept.engine.open_runs == 1
    kept.die()


def test_history_of_scores_survives_a_restart(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for trace in range(1, 61):
        kept.take(request(trace))
        kept.wind(3.0)
    before = kept.look().histories
    assert all(len(points) > 3 for points in before.values())
    assert kept.again().look().histories == before


def test_one_directory_is_one_service_s(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    with pytest.raises(ConfigurationError, match="another service"):
        Kept(tmp_path)
    kept.die()


def test_the_key_of_hashes_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    key = kept.directory.key()

    assert kept.directory.key() == key
    assert (tmp_path / "hash.key").stat().st_mode & 0o777 == 0o600
    kept.die()
