"""The last whole runs of an agent, for pages."""

from __future__ import annotations

import marshal
from bisect import insort
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from otel_reliability.model.record import BadRecord, read_run, write_run
from otel_reliability.model.run import AgentKey, CloseReason, ModelCall, Outcome, Run, ToolCall, Tools
from otel_reliability.model.span import Evaluation

T = TypeVar("T")

_FIELDS: Final = tuple(name for name in Run._fields if name not in {"run_id", "end_ns"})
_FORMAT: Final = 4
"""Of `marshal`: every supported Python reads it."""


class Packed(NamedTuple):
    """A run that was read back and that nobody has asked for yet."""

    end_ns: int
    run_id: str
    body: bytes

    def run(self) -> Run:
        """The run itself. Raises `BadRecord`."""
        return read_run(marshal.loads(self.body))  # noqa: S302 (whoever keeps it checks that we wrote it)


def pack(run: Run) -> Packed:
    """A run as it is kept over a restart.

    >>> from otel_reliability.testing import run
    >>> pack(run(["search"])).run().path
    ('search',)
    """
    return Packed(run.end_ns, run.run_id, marshal.dumps(write_run(run), _FORMAT))


class Squeezed(NamedTuple):
    """A run that will not change any more, as one string of bytes: a third of what its parts take apart."""

    end_ns: int
    run_id: str
    body: bytes

    def run(self) -> Run:
        """The run itself, as it was."""
        fields: dict[str, Any] = dict(zip(_FIELDS, marshal.loads(self.body), strict=True))  # noqa: S302 (we wrote it)
        fields.update(
            run_id=self.run_id,
            end_ns=self.end_ns,
            key=AgentKey(*fields["key"]),
            tools=Tools(fields["tools"]),
            outcome=Outcome(fields["outcome"]),
            closed_by=CloseReason(fields["closed_by"]),
            tool_calls=_each(ToolCall, fields["tool_calls"]),
            model_calls=_each(ModelCall, fields["model_calls"]),
            evaluations=_each(Evaluation, fields["evaluations"]),
        )
        return Run(**fields)


def squeeze(run: Run) -> Squeezed:
    """A run as small as can be.

    >>> from otel_reliability.testing import run
    >>> kept = run(["search", "book"])
    >>> squeeze(kept).run() == kept
    True
    """
    plain = {
        **run._asdict(),
        "key": tuple(run.key),
        "tools": run.tools.value,
        "outcome": run.outcome.value,
        "closed_by": run.closed_by.value,
        "tool_calls": None if run.tool_calls is None else tuple(map(tuple, run.tool_calls)),
        "model_calls": tuple(map(tuple, run.model_calls)),
        "evaluations": tuple(map(tuple, run.evaluations)),
    }
    return Squeezed(run.end_ns, run.run_id, marshal.dumps(tuple([plain[name] for name in _FIELDS]), _FORMAT))


def _each(kind: type[T], rows: Iterable[Iterable[Any]] | None) -> tuple[T, ...] | None:
    return None if rows is None else tuple(kind(*row) for row in rows)


Kept: TypeAlias = Run | Packed | Squeezed


class RecentRuns:
    """The `limit` runs with the greatest (end time, run id), the newest last."""

    __slots__ = ("_limit", "_runs")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._runs: list[Kept] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        for kept in self._runs:
            if isinstance(kept, Packed):
                with suppress(BadRecord):  # one that another version wrote, and this one cannot read
                    yield kept.run()
            elif isinstance(kept, Squeezed):
                yield kept.run()
            else:
                yield kept

    def add(self, run: Run) -> None:
        """A run was closed."""
        insort(self._runs, run, key=order)
        del self._runs[: -self._limit or None]

    def remove(self, run_id: str) -> None:
        """A run was withdrawn, or is about to come anew."""
        for at, run in enumerate(self._runs):
            if run.run_id == run_id:
                del self._runs[at]
                return

    def settle(self, run_id: str) -> None:
        """A run will not change any more. (In a busy agent newer ones have taken its place by then.)"""
        for at, run in enumerate(self._runs):
            if run.run_id == run_id:
                if isinstance(run, Run):
                    self._runs[at] = squeeze(run)
                return

    def to_state(self) -> list[tuple[int, str, bytes]]:
        """The runs in plain values."""
        whole = (kept.run() if isinstance(kept, Squeezed) else kept for kept in self._runs)
        packed = (kept if isinstance(kept, Packed) else pack(kept) for kept in whole)
        return [(one.end_ns, one.run_id, one.body) for one in packed]

    def restore(self, state: Iterable[tuple[int, str, bytes]]) -> None:
        """Take over what `to_state` wrote."""
        self._runs[:] = [Packed(*plain) for plain in state][-self._limit or None :]


def order(run: Kept) -> tuple[int, str]:
    """What runs are sorted by."""
    return (run.end_ns, run.run_id)
