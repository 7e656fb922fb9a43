"""The spans of a request by trace: rows of model and tool calls, and the others, as an open bundle holds them.

So what a reader makes of a request is what the assembler keeps of it, and no call is an object in between. Whoever asks for the
spans themselves gets them, made anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import eq
from typing import Self, TypeAlias, overload

from otel_reliability.assembly.compiled import take_rows
from otel_reliability.assembly.rows import END, ROW_BYTES, Models, Tools
from otel_reliability.assembly.unit import SPAN_BYTES
from otel_reliability.model.span import AgentSpan, TraceId

Held: TypeAlias = tuple[Models, Tools, list[AgentSpan]]


class Block:
    """Spans of one trace that come together; none of them is a mere place, or names its parent by a link.

    A bundle may keep its lists and add to them: the block goes on to tell what it held.
    """

    __slots__ = ("_ends", "count", "models", "others", "tools", "trace_id")

    def __init__(self, trace_id: TraceId, models: Models, tools: Tools, others: list[AgentSpan]) -> None:
        self.trace_id, self.models, self.tools, self.others = trace_id, models, tools, others
        self.count = len(models) // Models.width + len(tools) // Tools.width + len(others)
        """How many spans it holds."""
        self._ends: tuple[int, int, int] | None = None

    @classmethod
    def of(
        cls, trace_id: TraceId, models: Models, tools: Tools, others: list[AgentSpan], undecided: list[AgentSpan] | None
    ) -> Self:
        """The block of rows and other spans, and of spans that may be either."""
        at, number = 0, 0 if undecided is None else len(undecided)
        while undecided is not None and at < number:
            taken = take_rows(undecided, at, models, tools, number)
            if not taken:
                others.append(undecided[at])
            at += taken or 1
        return cls(trace_id, models, tools, others)

    def __iter__(self) -> Iterator[AgentSpan]:
        models, tools, others = self.held()
        return chain(models.spans(self.trace_id), tools.spans(self.trace_id), others)

    @property
    def end_ns(self) -> int:
        """When its last span ended, in the order in which they are told."""
        models, tools, others = self.held()
        if others:
            return others[-1].end_ns
        return tools[END - Tools.width] if tools else models[END - Models.width]

    @property
    def weight(self) -> int:
        """Estimated bytes."""
        others = len(self.others) if self._ends is None else self._ends[2]
        return (self.count - others) * ROW_BYTES + others * SPAN_BYTES

    def held(self) -> Held:
        """What it holds, to be looked at."""
        if self._ends is None:
            return self.models, self.tools, self.others
        models, tools, others = self._ends
        return self.models.part(models), self.tools.part(tools), self.others[:others]

    def give(self) -> Held:
        """What it holds, for a bundle to keep. Whoever comes second gets copies."""
        held = self.held()
        if self._ends is None:
            self._ends = len(self.models), len(self.tools), len(self.others)
        return held


class Blocks(Sequence[AgentSpan]):
    """The spans of a request, as blocks and the `rest`, which are in none of them.

    It is the sequence of its spans: those of one block after those of another, the rest last.
    """

    __slots__ = ("_count", "blocks", "rest")

    def __init__(self, blocks: Sequence[Block], rest: Sequence[AgentSpan] = ()) -> None:
        self.blocks, self.rest = blocks, rest
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
        """The spans that are no rows: all that may say more than what every call says."""
        return chain(chain.from_iterable(block.held()[2] for block in self.blocks), self.rest)

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
                yield Blocks(some)
                some, number = [], 0
        for at in range(0, len(self.rest), least):
            yield Blocks(some, self.rest[at : at + least])
            some = []
        if some:
            yield Blocks(some)
