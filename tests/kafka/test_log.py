"""The pages of a partition: what is kept stays, whoever has it, and takes little more room than it needs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.kafka import log as logging
from otel_reliability.kafka.log import Entry, Log
from otel_reliability.kafka.shelf import PIECE, MemoryShelf
from otel_reliability.model.span import TraceId
from otel_reliability.testing import trace_id


def part(trace: TraceId, number: int, size: int = 10, born: int = 1) -> Entry:
    """Something to keep."""
    return Entry(b"p", trace, born, number, bytes([number % 256]) * size)


def restored(shelf: MemoryShelf) -> Log:
    """The log of another worker."""
    log = Log(shelf)
    for key, kept in shelf.items():
        log.restore(key, kept)
    log.begin()
    return log


@given(st.data())
def test_what_is_kept_is_there_until_it_is_forgotten(data: st.DataObject) -> None:
    """Whatever else is added and forgotten, on small pages, and whoever takes over in between; then nothing is left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging, "PAGE", data.draw(st.sampled_from((1, 200, 1_000))))
        patch.setattr(logging, "FEW", data.draw(st.sampled_from((1, 2, 8))))
        shelf = MemoryShelf()
        log = Log(shelf)
        kept: dict[TraceId, list[Entry]] = {}
        for step in data.draw(st.lists(st.tuples(st.integers(1, 6), st.sampled_from("aaaaft")), max_size=60)):
            trace = trace_id(step[0])
            if step[1] == "a":
                born = kept[trace][0].born if trace in kept else log.birth()
                entry = part(trace, len(kept.get(trace, ())), 1 + step[0] * 9, born)
                kept.setdefault(trace, []).append(entry)
                log.add(entry)
            elif step[1] == "f":
                log.forget(trace)
                kept.pop(trace, None)
            log.write()
            if step[1] == "t":
                log = restored(shelf)
                for gone in {trace_id(number) for number in range(7)} - kept.keys():
                    log.forget(gone)  # what was forgotten may stand there still, as a partition finds out in time
            assert {known: log.of(known) for known in kept} == kept
        for trace in kept:
            log.forget(trace)
        log.write()

    assert shelf.kept == {}


def test_one_long_trace_does_not_hold_what_came_with_it() -> None:
    """Thousands of short ones come and go beside it; what is kept is of the order of what is its own."""
    shelf = MemoryShelf()
    log, long, when = Log(shelf), trace_id(1), random.Random(5)
    open_traces: list[TraceId] = []
    for number in range(2_000):
        log.add(part(long, number, 20))
        short = trace_id(number + 2)
        log.add(part(short, 0, 1_000))
        open_traces.append(short)
        if len(open_traces) > 50:
            log.forget(open_traces.pop(when.randrange(50)))
        log.write()

    size = sum(map(len, shelf.kept.values()))
    assert size < 2_000 * 1_000 / 2
    assert [entry.number for entry in restored(shelf).of(long)] == list(range(2_000))


def test_owners_come_and_go_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are cleared, and the one at hand fills up because of it and is cleared too; in the end nothing is left."""
    monkeypatch.setattr(logging, "PAGE", 2_000)
    shelf, when = MemoryShelf(), random.Random(7)
    log, alive = Log(shelf), dict[TraceId, list[Entry]]()
    for step in range(6_000):
        trace = trace_id(when.randrange(400))
        kept = alive.setdefault(trace, [])
        kept.append(part(trace, len(kept), when.randrange(300), kept[0].born if kept else log.birth()))
        log.add(kept[-1])
        if not step % 300:  # most are over at about the same time
            for gone in when.sample(sorted(alive), len(alive) * 19 // 20):
                log.forget(gone)
                del alive[gone]
        log.write()
        if not step % 500:
            assert {known: log.of(known) for known in alive} == alive
    for trace in alive:
        log.forget(trace)
    log.write()

    assert shelf.kept == {}


def test_clearing_a_page_may_clear_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """What moves fills the page at hand, which is then worth clearing itself; and one owner has something in both."""
    monkeypatch.setattr(logging, "PAGE", 300)  # nine entries
    shelf = MemoryShelf()
    log = Log(shelf)
    for number in (*range(1, 10), *range(11, 19), 9):
        log.add(part(trace_id(number), number, 1))
    log.write()
    for number in (*range(11, 19), *range(2, 10)):
        log.forget(trace_id(number))

    assert len(shelf.kept) == 1
    assert [entry.number for entry in restored(shelf).of(trace_id(1))] == [1]


def test_pages_stay_below_what_a_message_holds() -> None:
    """What is large stands alone."""
    shelf = MemoryShelf()
    log = Log(shelf)
    for number in range(5):
        log.add(part(trace_id(1), number, PIECE // 2 + 1))
        log.write()

    assert len(shelf.kept) == 5
    assert max(map(len, shelf.kept.values())) < PIECE


def test_what_is_damaged_is_counted_and_let_go() -> None:
    """The rest is there. What is no page is another's."""
    shelf = MemoryShelf()
    log = Log(shelf)
    for number in range(3):
        log.add(part(trace_id(1), number))
    log.write()
    (page,) = shelf.kept
    shelf.put(page, shelf.kept[page][:-3])
    shelf.put(page[:-1] + b"\x09", b"?")
    shelf.put(b"something else", b"?")
    after = restored(shelf)

    assert after.damaged == 2
    assert after.restore(b"something else", b"?") is None
    assert [entry.number for entry in after.of(trace_id(1))] == [0, 1]
    assert set(shelf.kept) == {page, b"something else"}
