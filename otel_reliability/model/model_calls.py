"""The model calls of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from otel_reliability.model.columns import Columns
from otel_reliability.model.packed import Packed, models_in


class ModelCall(NamedTuple):
    """One model call of a run."""

    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    failed: bool
    agent: str
    start_ns: int
    end_ns: int


class ModelCalls(Columns[ModelCall], record=ModelCall, apart=("start_ns", "end_ns")):
    """The model calls of a run.

    >>> calls = ModelCalls.of([ModelCall("m", 9, 1, False, "a", 0, 5), ModelCall("m", 12, 2, False, "a", 6, 8)])
    >>> calls.duration_ns, calls.input_tokens
    (7, (9, 12))

    Of packed ones `front` tells how many there are, how long they took together, the greatest input, the sum of the outputs, and
    the agent. All of them tell their tokens.
    """

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.columns[_START]) if self.packed is None else self.front[0]

    def _unpacked(self, packed: Packed) -> tuple[Any, ...]:
        return models_in(packed, self.front[-1])

    @property
    def input_tokens(self) -> tuple[int | None, ...]:
        """The input of each, None where not told."""
        return self.column("input_tokens")

    @property
    def output_tokens(self) -> tuple[int | None, ...]:
        """The output of each, None where not told."""
        return self.column("output_tokens")

    @property
    def ends(self) -> tuple[int, ...]:
        """When each ended, in nanoseconds."""
        return self.columns[_END]

    @property
    def duration_ns(self) -> int:
        """The sum of their durations."""
        if self.packed is not None:
            return self.front[1]
        return sum(self.columns[_END]) - sum(self.columns[_START])

    @property
    def largest_input(self) -> int | None:
        """The greatest input of one call, None where none tells it."""
        if self.packed is not None:
            return self.front[2]
        return max(self._told(_INPUT), default=None)

    @property
    def replies(self) -> tuple[int, int]:
        """How many calls tell their output, and the sum of it."""
        if self.packed is not None:
            return self.front[0], self.front[3]
        told = self._told(_OUTPUT)
        return len(told), sum(told)

    def _told(self, at: int) -> Sequence[int]:
        """The numbers of a column that are told. (Most often all of them are.)"""
        column = self.columns[at]
        if type(column) is not tuple:
            return () if column is None else (column,) * len(self)
        numbers = cast("tuple[int | None, ...]", column)
        return [one for one in numbers if one is not None] if None in numbers else cast("tuple[int, ...]", numbers)


_INPUT: Final = ModelCalls.fields.index("input_tokens")
_OUTPUT: Final = ModelCalls.fields.index("output_tokens")
_START: Final = ModelCalls.fields.index("start_ns")
_END: Final = ModelCalls.fields.index("end_ns")
NO_MODEL_CALLS: Final = ModelCalls.of(())
