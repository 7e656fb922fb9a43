"""What the worker asks of a stage: to make a partition from its shelf, and to take messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from otel_reliability.kafka.agent import Agent
from otel_reliability.kafka.messages import Message, Outgoing
from otel_reliability.kafka.shelf import Shelf
from otel_reliability.telemetry.instruments import Point


class Poison(Exception):
    """A message that cannot be used: by which word it is counted, and what is wrong with it. Holds no content."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


class Partition(Protocol):
    """What a stage knows of one partition. Its time is that of the messages; a message without a value tells only that."""

    @property
    def behind(self) -> bool:
        """Whether more is due than the last message could bring about: another, without a value, goes on with it."""
        ...

    def take(self, message: Message, now: float) -> Iterable[Outgoing]:
        """Take in one message. Gives what is to be sent with it. Raises `Poison`, with nothing taken."""
        ...


class Told(NamedTuple):
    """Something to be sent of itself, when all before it is committed."""

    topic: str
    key: bytes
    value: bytes


class Stage(Protocol):
    """One stage. It is called from the worker's thread, but for `agents` and `numbers`."""

    @property
    def name(self) -> str:
        """Its word in commands, group and messages."""
        ...

    @property
    def inputs(self) -> Sequence[str]:
        """The topics it reads; all have as many partitions, and those of one number go to one worker."""
        ...

    @property
    def output(self) -> str:
        """The topic that what comes of messages goes to."""
        ...

    @property
    def others(self) -> Sequence[str]:
        """Further topics it writes."""
        ...

    def open(self, number: int, shelf: Shelf) -> Partition:
        """Take a partition over, from what stands on its shelf."""
        ...

    def close(self, number: int) -> None:
        """Another has it now, or nobody."""
        ...

    def wake(self, seconds: float) -> bool:
        """Go on with reading back what can wait, for about so long. Whether all is there: before, nothing is told of it."""
        ...

    def tell(self, seconds: float) -> Iterator[Told] | None:
        """What is to be sent of itself now, all being committed; None: nothing is due. `seconds` is any steady clock."""
        ...

    def agents(self) -> Iterable[Agent]:
        """The agents whose numbers this worker tells. From any thread."""
        ...

    def numbers(self) -> Iterable[Point]:
        """Self-telemetry of the stage."""
        ...
