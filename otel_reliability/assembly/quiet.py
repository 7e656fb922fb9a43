"""Traces of which nothing comes any more, until they are forgotten, and what is remembered of them until then.

There are tens of thousands, and each is looked at twice: when its run settles, and a quarter of an hour later. The compiled
module, where it is installed, keeps them as bytes, one behind the other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from otel_reliability import native
from otel_reliability.assembly.rows import ID_BYTES
from otel_reliability.assembly.unit import Place
from otel_reliability.model.span import SpanId, TraceId

MODULE: Final = "otel_reliability_native_quiet"
NATIVE: Final[Any] = native.load(MODULE)
Past: TypeAlias = tuple[
    "str | tuple[str, ...]",
    "bytes | tuple[SpanId, ...]",
    dict[SpanId, Place] | None,
    dict[SpanId, SpanId | None] | None,
]
"""What is remembered of a bundle whose runs are final: the name of its agent, or the names, two at most; the ids of its spans,
one after the other; the places of other spans and the open ones, where there are any. Plain values cost no looks for garbage.
"""


class PlainQuiet(OrderedDict[TraceId, float]):
    """Since when which traces are quiet, in the order in which they became so."""

    def due(self, horizon: float) -> list[TraceId]:
        """The first, as long as they have been quiet since then."""
        found: list[TraceId] = []
        for trace_id, since in self.items():  # a dict does not find its first fast when many went
            if since > horizon:
                break
            found.append(trace_id)
        return found

    def drop(self, trace_ids: list[TraceId]) -> None:
        """These are no quiet traces any more, if they were."""
        for trace_id in trace_ids:
            self.pop(trace_id, None)


class PlainPasts(dict[TraceId, Past]):
    """What is remembered, by trace."""

    def forget(self, trace_ids: list[TraceId]) -> tuple[int, list[TraceId]]:
        """Forget those of these that are remembered by nothing but ids of spans, all as long as usual. Gives how many ids that
        was, and the other traces.
        """
        number, others = 0, list[TraceId]()
        for trace_id in trace_ids:
            past = self.get(trace_id)
            if (
                past is not None
                and isinstance(past[0], str)
                and isinstance(past[1], bytes)
                and past[2:] == (None, None)
            ):
                number += len(past[1]) // ID_BYTES
                del self[trace_id]
            else:
                others.append(trace_id)
        return number, others


if TYPE_CHECKING or NATIVE is None:
    _Quiet, _Pasts = PlainQuiet, PlainPasts
else:
    _Quiet, _Pasts = NATIVE.Quiet, NATIVE.Pasts


class Quiet(_Quiet):
    """As `PlainQuiet`."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        """The same whether it is compiled or not."""
        return _stored(self)


class Pasts(_Pasts):
    """As `PlainPasts`."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        """The same whether it is compiled or not."""
        return _stored(self)


def _stored(one: Quiet | Pasts) -> tuple[Any, tuple[()], None, None, Iterator[Any]]:
    items: Iterable[Any] = one.items()
    return type(one), (), None, None, iter(list(items))
