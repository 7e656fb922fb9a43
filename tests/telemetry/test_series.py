from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.telemetry import names
from otel_reliability.telemetry.series import SLICE, Book, Exemplar, Spread, Tally, owner_of
from otel_reliability.testing import FakeClock

SUPPORT = {"service.name": "shop", "gen_ai.agent.name": "support"}
OWNER = tuple(SUPPORT.items())
TRACE = (b"t" * 16, b"s" * 8)


def everything(book: Book) -> dict[str, int]:
    """How many series each instrument has."""
    found: dict[str, int] = {}
    for spec, some in book.slices(lambda spec, labels, cell: None):
        found[spec.name] = found.get(spec.name, 0) + len(some)
    return found


def test_a_counter_adds_up_and_keeps_its_start_and_last_exemplar() -> None:
    """A series begins with its first measurement."""
    clock = FakeClock()
    book = Book(clock.wall)
    runs = book.create_counter(names.RUNS.name, "", "")
    runs.add(2, SUPPORT, TRACE)
    clock.advance(5)
    runs.add(3, SUPPORT, (b"u" * 16, b"s" * 8))
    runs.add(1, SUPPORT, None)
    (cell,) = runs.cells.values()

    assert (cell.value, cell.start_ns) == (6, clock.wall() - 5 * 10**9)
    assert cell.exemplar == Exemplar(3, clock.wall(), b"u" * 16, b"s" * 8)


@given(st.lists(st.floats(-5, 120), min_size=1))
def test_a_histogram_puts_each_measurement_in_its_bucket(values: list[float]) -> None:
    """A bucket holds what is above the boundary before and not above its own; nothing is lost."""
    book = Book(lambda: 1)
    scores = book.create_histogram(names.RUN_SCORE.name, "", "", explicit_bucket_boundaries_advisory=None)
    for value in values:
        scores.record(value, SUPPORT, None)
    (cell,) = scores.cells.values()
    bounds = names.RUN_SCORE.boundaries
    below = [sum(value <= bound for value in values) for bound in bounds]

    assert [sum(cell.counts[: at + 1]) for at in range(len(bounds))] == below
    assert (cell.count, cell.lowest, cell.highest) == (len(values), min(values), max(values))
    assert cell.total == pytest.approx(sum(values))


def test_a_bucket_keeps_the_last_run_that_fell_in_it() -> None:
    """One exemplar a bucket."""
    book = Book(lambda: 7)
    scores = book.create_histogram(names.RUN_SCORE.name, "", "", explicit_bucket_boundaries_advisory=None)
    scores.record(3, SUPPORT, TRACE)
    scores.record(4, SUPPORT, (b"u" * 16, b"s" * 8))
    scores.record(50, SUPPORT, TRACE)
    (cell,) = scores.cells.values()

    assert [one for one in cell.exemplars if one] == [Exemplar(4, 7, b"u" * 16, b"s" * 8), Exemplar(50, 7, *TRACE)]


def test_slices_hold_every_series_once() -> None:
    """However many there are."""
    book = Book(lambda: 1)
    runs = book.create_counter(names.RUNS.name, "", "")
    number = 2 * SLICE + 10
    for at in range(number):
        runs.add(1, {**SUPPORT, "gen_ai.agent.name": f"agent-{at}"}, None)
    slices = [len(some) for _, some in book.slices(lambda spec, labels, cell: None)]

    assert (sum(slices), len(slices)) == (number, 3)


def test_series_end_with_their_agent() -> None:
    """All of an agent's series go, of whatever instrument and further attributes; those of others stay."""
    book = Book(lambda: 1)
    runs = book.create_counter(names.RUNS.name, "", "")
    calls = book.create_counter(names.TOOL_CALLS.name, "", "")
    scores = book.create_histogram(names.RUN_SCORE.name, "", "", explicit_bucket_boundaries_advisory=None)
    for agent in ("support", "refunds"):
        labels = {**SUPPORT, "gen_ai.agent.name": agent}
        runs.add(1, {**labels, names.OUTCOME: "success"}, None)
        calls.add(1, {**labels, names.TOOL: "search", names.OK: True}, None)
        scores.record(50, labels, None)
    book.keep({OWNER})

    assert everything(book) == {names.RUNS.name: 1, names.TOOL_CALLS.name: 1, names.RUN_SCORE.name: 1}
    assert {spec.name for spec, _ in book.ended} == {names.RUNS.name, names.TOOL_CALLS.name, names.RUN_SCORE.name}
    assert all(("gen_ai.agent.name", "refunds") in labels for _, labels in book.ended)


def test_a_series_that_comes_back_begins_anew() -> None:
    """Its start is later, so that nobody takes the fall for a negative rate."""
    clock = FakeClock()
    book = Book(clock.wall)
    runs = book.create_counter(names.RUNS.name, "", "")
    runs.add(5, SUPPORT, None)
    book.keep(set())
    clock.advance(60)
    runs.add(1, SUPPORT, None)
    (cell,) = runs.cells.values()

    assert (cell.value, cell.start_ns) == (1, clock.wall())
    assert book.has(names.RUNS, OWNER)


def test_an_owner_is_what_is_left_of_a_series_without_its_own_attributes() -> None:
    """An attribute of the agent's that an instrument has too would be the instrument's."""
    labels = (*OWNER, (names.TOOL, "search"), (names.OK, True))

    assert owner_of(names.TOOL_CALLS, labels) == OWNER
    assert owner_of(names.RETRY_EXPLOSIONS, OWNER) == OWNER


def test_cells_are_of_their_kind() -> None:
    """Counters have tallies, histograms spreads, and writers tell them apart by type."""
    book = Book(lambda: 1)
    book.create_counter(names.RUNS.name, "", "").add(1, SUPPORT, None)
    book.create_histogram(names.RUN_SCORE.name, "", "", explicit_bucket_boundaries_advisory=None).record(
        1, SUPPORT, None
    )

    assert [type(cell) for _, some in book.slices(lambda spec, labels, cell: cell) for cell in some] == [Tally, Spread]
