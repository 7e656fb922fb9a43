"""The tool calls of a run."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from otel_reliability.model.columns import Columns
from otel_reliability.model.packed import Packed, tools_in


class ToolCall(NamedTuple):
    """One tool call of a run. `retry`: it repeats a call that failed. `repeat`: it repeats one that succeeded (a loop).

    `chain` is the position in its retry chain (0: the first attempt). `agent` is the agent that made it. `has_effect`: it
    succeeded and changed something (`model.tools`).
    """

    name: str
    ok: bool
    retry: bool
    repeat: bool
    chain: int
    agent: str
    start_ns: int
    end_ns: int
    arguments: bytes | None
    result: bytes | None
    effect: bytes | None
    has_effect: bool = False


class ToolCalls(Columns[ToolCall], record=ToolCall, apart=("name", "start_ns", "end_ns")):
    """The tool calls of a run, in the order of the clock.

    >>> from otel_reliability.testing import call
    >>> calls = ToolCalls.of([call("pay", ok=False), call("pay", retry=True, chain=1)])
    >>> calls.names, calls.failed, calls.retries, calls.repeats, calls.longest_chain
    (('pay', 'pay'), 1, 1, 0, 1)
    >>> calls == (call("pay", ok=False), call("pay", retry=True, chain=1))
    True

    Of packed ones `front` holds the columns up to `agent`.
    """

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.first[_NAME])

    def _unpacked(self, packed: Packed) -> tuple[Any, ...]:
        return *self.front, *tools_in(packed)

    @property
    def first(self) -> tuple[Any, ...]:
        """The columns up to `agent` at least, which are there when the others are packed."""
        return self.columns if self.packed is None else self.front

    @property
    def names(self) -> tuple[str, ...]:
        """The tools, one name a call."""
        return self.first[_NAME]

    @property
    def failed(self) -> int:
        """How many failed."""
        ok = self.first[_OK]
        return ok.count(False) if type(ok) is tuple else 0 if ok else len(self)

    @property
    def retries(self) -> int:
        """How many were retries."""
        return self._how_many(self.first[_RETRY])

    @property
    def repeats(self) -> int:
        """How many were repeats."""
        return self._how_many(self.first[_REPEAT])

    @property
    def longest_chain(self) -> int:
        """The greatest number of retries of one call; 0 without calls."""
        chain: Any = self.first[_CHAIN]
        return max(cast("tuple[int, ...]", chain), default=0) if type(chain) is tuple else chain if len(self) else 0

    def _how_many(self, column: Any) -> int:
        return column.count(True) if type(column) is tuple else len(self) if column else 0


_NAME: Final = ToolCalls.fields.index("name")
_OK: Final = ToolCalls.fields.index("ok")
_RETRY: Final = ToolCalls.fields.index("retry")
_REPEAT: Final = ToolCalls.fields.index("repeat")
_CHAIN: Final = ToolCalls.fields.index("chain")
NO_TOOL_CALLS: Final = ToolCalls.of(())
