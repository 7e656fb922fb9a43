from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from otel_reliability.telemetry.otlp import ACCEPTED, Answer, Sender
from otel_reliability.telemetry.otlp_packer import Request
from otel_reliability.telemetry.push import PAUSE, TRIES, Push
from tests.real.waiting import until

BUSY, NEVER = Answer(False, "unavailable", 0.0), Answer(False, "invalid_argument")


class Pieces:
    """Requests that are written anew at each sending, and what was told of them."""

    def __init__(self, number: int = 1) -> None:
        self.bodies = [bytes([at]) for at in range(number)]
        self.told: list[str] = []

    def write(self) -> Iterator[Request]:
        self.told.append("write")
        for body in self.bodies:
            yield Request(body, ())

    def taken(self, request: Request) -> None:
        self.told.append(f"taken {request.body[0]}")

    def done(self) -> None:
        self.told.append("done")


class Sink(Sender):
    """Answers as it is told, then accepts."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = deque(answers)
        self.sent: list[bytes] = []
        self.timeouts: list[float | None] = []
        self.closed = False

    def send(self, body: bytes, timeout: float | None = None) -> Answer:
        self.sent.append(body)
        self.timeouts.append(timeout)
        return self.answers.popleft() if self.answers else ACCEPTED

    def close(self) -> None:
        self.closed = True


def push_of(pieces: Pieces, sink: Sink, interval: float = 0.01) -> Push:
    """A push of these pieces. Its pauses are no longer than its interval."""
    return Push(pieces, sink, interval)  # pyright: ignore[reportArgumentType]


def test_a_sending_that_was_taken_is_done() -> None:
    """Each request is told as taken, then all."""
    pieces, sink = Pieces(2), Sink()

    assert push_of(pieces, sink).send()
    assert pieces.told == ["write", "taken 0", "taken 1", "done"]


def test_a_busy_receiver_is_asked_again() -> None:
    """A few times within a sending, then at the next one, which is written anew."""
    pieces, sink = Pieces(), Sink(*[BUSY] * (TRIES + 1))
    push = push_of(pieces, sink)

    assert not push.send()
    assert push.send()
    assert len(sink.sent) == TRIES + 2
    assert pieces.told == ["write", "write", "taken 0", "done"]
    assert push.outcomes == {"unavailable": TRIES + 1, "accepted": 1}


def test_what_comes_after_waits_for_a_busy_receiver() -> None:
    """A receiver that has no room for one request has none for the next."""
    sink = Sink(*[BUSY] * TRIES)

    assert not push_of(Pieces(3), sink).send()
    assert set(sink.sent) == {b"\0"}


def test_a_request_refused_for_good_keeps_no_other_back() -> None:
    """It is not sent again, and the sending is not done."""
    pieces, sink = Pieces(3), Sink(ACCEPTED, NEVER)

    assert not push_of(pieces, sink).send()
    assert sink.sent == [b"\0", b"\1", b"\2"]
    assert pieces.told == ["write", "taken 0", "taken 2"]


def test_it_sends_every_interval_and_once_more_at_the_end() -> None:
    """The last sending has a deadline."""
    pieces, sink = Pieces(), Sink()
    push = push_of(pieces, sink)
    push.start()
    until(lambda: pieces.told.count("done") >= 2, "two sendings")
    push.stop(2.0)
    before = pieces.told.count("write")

    assert sink.closed
    assert sink.timeouts[-1] is not None
    assert sink.timeouts[-1] <= 2.0
    assert pieces.told[-1] == "done"
    assert pieces.told.count("write") == before >= 3


def test_the_end_is_not_held_up_by_a_receiver_that_is_away() -> None:
    """One try, and that is it."""
    sink = Sink(*[BUSY] * 10)
    push_of(Pieces(), sink, interval=60.0).stop(0.5)

    assert len(sink.sent) == 1
    assert PAUSE > 0.5


def test_failing_is_told_once() -> None:
    """When it begins, and when it is over; not at each sending."""
    push = push_of(Pieces(), Sink(*[NEVER] * 3))
    with heard("otel_reliability.service") as records:
        for _ in range(5):
            push.send()

    assert [record.levelname for record in records] == ["WARNING", "INFO"]


class Heard(logging.Handler):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def heard(name: str) -> Generator[list[logging.LogRecord]]:
    """What is said to a logger, whoever else listens to it or to those above."""
    handler = Heard()
    logger = logging.getLogger(name)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler.records
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
