from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.config import AssemblySettings
from otel_reliability.model.event import RunChange, RunEvent
from otel_reliability.model.record import RunRecord
from otel_reliability.service.run_inbox import SLACK, RunInbox
from otel_reliability.testing import run

CLOSED, REVISED, WITHDRAWN, SETTLED = RunChange.CLOSED, RunChange.REVISED, RunChange.WITHDRAWN, RunChange.SETTLED
FIRST, SECOND = run(["search"]), run(["search", "book"])
SETTINGS = AssemblySettings(reopen=60.0, remember=900.0)
WAIT = 60.0 + SLACK


def inbox(**options: int) -> RunInbox:
    """An inbox that has seen nothing."""
    return RunInbox(SETTINGS, **options)


def test_what_happens_to_a_run_there_happens_here() -> None:
    """Closed, revised, settled: one event each, the revision with what was before."""
    box = inbox()

    assert box.take(RunRecord(CLOSED, FIRST, 1), 0.0) == [RunEvent(CLOSED, FIRST)]
    assert box.take(RunRecord(REVISED, SECOND, 2), 1.0) == [RunEvent(REVISED, SECOND, FIRST)]
    assert box.take(RunRecord(SETTLED, SECOND, 3), 2.0) == [RunEvent(SETTLED, SECOND)]


def test_a_withdrawn_run_goes_as_it_was_known_here() -> None:
    """And may come again, if it turns out to be one after all."""
    box = inbox()
    box.take(RunRecord(CLOSED, FIRST, 1), 0.0)

    assert box.take(RunRecord(WITHDRAWN, SECOND, 2), 0.0) == [RunEvent(WITHDRAWN, FIRST)]
    assert box.take(RunRecord(CLOSED, SECOND, 3), 0.0) == [RunEvent(CLOSED, SECOND)]


def test_records_may_come_twice() -> None:
    """Nothing happens the second time, before and after the run is settled."""
    box = inbox()
    records = [RunRecord(CLOSED, FIRST, 1), RunRecord(SETTLED, FIRST, 2)]
    first = [box.take(record, 0.0) for record in records]
    second = [box.take(record, 1.0) for record in records]

    assert [len(events) for events in first] == [1, 1]
    assert second == [[], []]
    assert box.accounts["taken"] == 2


def test_of_two_records_the_later_told_stands() -> None:
    """One that overtook the other on its way is the last word."""
    box = inbox()

    assert box.take(RunRecord(REVISED, SECOND, 2), 0.0) == [RunEvent(CLOSED, SECOND)]
    assert box.take(RunRecord(CLOSED, FIRST, 1), 0.0) == []
    assert box.take(RunRecord(WITHDRAWN, SECOND, 3), 0.0) == [RunEvent(WITHDRAWN, SECOND)]
    assert box.take(RunRecord(REVISED, SECOND, 2), 0.0) == []


def test_a_closing_that_was_lost_is_made_up_for() -> None:
    """Settled as the first word of a run: it is closed and settled."""
    assert inbox().take(RunRecord(SETTLED, FIRST, 5), 0.0) == [RunEvent(CLOSED, FIRST), RunEvent(SETTLED, FIRST)]


def test_a_run_of_which_nothing_more_comes_is_settled_in_time() -> None:
    """Its sender may be gone."""
    box = inbox()
    box.take(RunRecord(CLOSED, FIRST, 1), 0.0)

    assert box.tick(WAIT - 1) == []
    assert box.tick(WAIT) == [RunEvent(SETTLED, FIRST)]
    assert box.take(RunRecord(REVISED, SECOND, 2), WAIT + 1) == []
    assert box.accounts["late"] == 1


def test_a_revision_gives_a_run_more_time() -> None:
    """The wait counts from the last word."""
    box = inbox()
    box.take(RunRecord(CLOSED, FIRST, 1), 0.0)
    box.take(RunRecord(REVISED, SECOND, 2), 100.0)

    assert box.tick(WAIT + 50) == []
    assert box.tick(WAIT + 100) == [RunEvent(SETTLED, SECOND)]


def test_there_is_a_ceiling() -> None:
    """Beyond it the longest untouched runs are settled early, and what is over is forgotten sooner."""
    box = inbox(most=10, most_remembered=5)
    for number in range(30):
        box.take(RunRecord(CLOSED, run(number=number), 1), float(number))
    events = box.tick(30.0)

    assert [event.run.run_id for event in events] == [f"run-{number}" for number in range(20)]
    assert (len(box), box.accounts["settled_early"]) == (10, 20)
    assert box.take(RunRecord(CLOSED, run(number=19), 2), 31.0) == []
    assert box.take(RunRecord(CLOSED, run(number=0), 2), 31.0) != []


def test_at_the_end_everything_is_settled() -> None:
    """What was withdrawn is not there."""
    box = inbox()
    box.take(RunRecord(CLOSED, run(number=1), 1), 0.0)
    box.take(RunRecord(CLOSED, run(number=2), 1), 0.0)
    box.take(RunRecord(WITHDRAWN, run(number=2), 2), 0.0)

    assert box.settle_all(1.0) == [RunEvent(SETTLED, run(number=1))]
    assert len(box) == 0


CHANGES = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([CLOSED, REVISED, WITHDRAWN]), st.sampled_from(["a", "b", "c"])),
    max_size=12,
)


@given(CHANGES, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(changes: list[tuple[int, RunChange, str]], random: Random) -> None:
    """However records are shuffled and doubled, what stands at the end is the last word of each run."""
    records = [
        RunRecord(change, run([path], number), told) for told, (number, change, path) in enumerate(changes, start=1)
    ]
    shuffled = [*records, *records]
    random.shuffle(shuffled)
    last = {record.run.run_id: record for record in records}
    expected = {run_id: record.run for run_id, record in last.items() if record.change is not WITHDRAWN}
    box, standing = inbox(), dict[str, object]()
    for record in shuffled:
        for event in box.take(record, 0.0):
            assert event.previous == (standing.get(event.run.run_id) if event.change is REVISED else None)
            if event.change is WITHDRAWN:
                assert standing.pop(event.run.run_id) == event.run
            else:
                assert (event.run.run_id in standing) == (event.change is REVISED)
                standing[event.run.run_id] = event.run

    assert standing == expected
