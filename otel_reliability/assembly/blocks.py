"""The spans of a request by trace: rows of model and tool calls, and the others, as an open bundle holds them.

So what a reader makes of a request is what the assembler keeps of it, and no call is an object in between. Whoever asks for the
spans themselves gets them, made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import eq
from typing import Self, overload

from otel_reliability.assembly import compiled, resting
from otel_reliability.assembly.rows import END, Models, Tools
from otel_reliability.model.packed import NUMBER, Packed
from otel_reliability.model.span import AgentSpan, TraceId


class Block:
    """Spans of one trace that come together; none of them is a mere place, or names its parent by a link.

    Its rows are bytes (`resting`), where they have a place there; they become objects for whoever asks for them.
    """

    __slots__ = ("_awake", "count", "others", "rest", "trace_id")

    def __init__(
        self, trace_id: TraceId, rest: Packed, others: list[AgentSpan], awake: tuple[Models, Tools] | None = None
    ) -> None:
        """`awake`: rows that have no place among those at rest, of which there are none then."""
        self.trace_id, self.others = trace_id, others
        self.rest = rest if awake is None else None
        """The rows at rest, None where they are awake."""
        self._awake = awake
        self.count = rest[NUMBER] + len(others)
        """How many spans it holds."""
        if awake is not None:
            self.count += len(awake[0]) // Models.width + len(awake[1]) // Tools.width

    @classmethod
    def mixed(cls, trace_id: TraceId, rest: Packed, others: list[AgentSpan], undecided: list[AgentSpan]) -> Self:
        """The block of rows and other spans, and of spans that may be either."""
        models, tools = compiled.wake(rest)
        at, number = 0, len(undecided)
        while at < number:
            taken = compiled.take_rows(undecided, at, models, tools, number)
            if not taken:
                others.append(undecided[at])
            at += taken or 1
        return cls.awake(trace_id, models, tools, others)

    @classmethod
    def awake(cls, trace_id: TraceId, models: Models, tools: Tools, others: list[AgentSpan]) -> Self:
        """The block of these rows and other spans."""
        rest = compiled.lay_down(models, tools)
        return cls(trace_id, resting.NO_ROWS, others, (models, tools)) if rest is None else cls(trace_id, rest, others)

    def beside(self, others: list[AgentSpan]) -> Block:
        """The same rows, beside other spans."""
        return Block(self.trace_id, self.rest or resting.NO_ROWS, others, self._awake)

    def __iter__(self) -> Iterator[AgentSpan]:
        models, tools = self.rows()
        return chain(models.spans(self.trace_id), tools.spans(self.trace_id), self.others)

    @property
    def end_ns(self) -> int:
        """When its last span ended, in the order in which they are told."""
        if self.others:
            return self.others[-1].end_ns
        models, tools = self.rows()
        return tools[END - Tools.width] if tools else models[END - Models.width]

    def rows(self) -> tuple[Models, Tools]:
        """Its rows, in lists that are the caller's own."""
        if self.rest is not None:
            return compiled.wake(self.rest)
        models, tools = self._awake or (Models(), Tools())
        return models.part(len(models)), tools.part(len(tools))


class Blocks(Sequence[AgentSpan]):
    """The spans of a request, as blocks and the `rest`, which are in none of them.

    It is the sequence of its spans: those of one block after those of another, the rest last.
    """

    __slots__ = ("_count", "_mixed", "blocks", "rest")

    def __init__(self, blocks: Sequence[Block], rest: Sequence[AgentSpan] = (), *, mixed: bool = True) -> None:
        """`mixed`: whether any span of a block may say more than what every call or agent says."""
        self.blocks, self.rest, self._mixed = blocks, rest, mixed
        self._count = sum([block.count for block in blocks]) + len(rest)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[AgentSpan]:
        return chain(chain.from_iterable(self.blocks), self.rest)

    @overload
    def __getitem__(self, index: int) -> AgentSpan: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[AgentSpan]: ...

    def __getitem__(self, index: int | slice) -> AgentSpan | Sequence[AgentSpan]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))  # pyright: ignore[reportUnknownArgumentType]

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Blocks({tuple(self)!r})"

    @property
    def end_ns(self) -> int:
        """When the last span ended, 0 where there is none."""
        if self.rest:
            return self.rest[-1].end_ns
        return self.blocks[-1].end_ns if self.blocks else 0

    def others(self) -> Iterator[AgentSpan]:
        """The spans that may say more than what every call or agent says: none of them is a row."""
        return chain(chain.from_iterable(block.others for block in (self.blocks if self._mixed else ())), self.rest)

    def parts(self, least: int) -> Iterator[Blocks]:
        """The same, a part at a time: of so many spans at least, but for the last, and not of many more."""
        if self._count <= least:
            yield self
            return
        some, number = list[Block](), 0
        for block in self.blocks:
            some.append(block)
            number += block.count
            if number >= least:
                yield Blocks(some, mixed=self._mixed)
                some, number = [], 0
        for at in range(0, len(self.rest), least):
            yield Blocks(some, self.rest[at : at + least], mixed=self._mixed)
            some = []
        if some:
            yield Blocks(some, mixed=self._mixed)
