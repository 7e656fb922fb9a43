"""The model calls of a run."""

from __future__ import annotations

from typing import Final, NamedTuple

from otel_reliability.model.columns import Columns


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
    """

    __slots__ = ()

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
        return sum(self.columns[_END]) - sum(self.columns[_START])


_START: Final = ModelCalls.fields.index("start_ns")
_END: Final = ModelCalls.fields.index("end_ns")
NO_MODEL_CALLS: Final = ModelCalls.of(())
