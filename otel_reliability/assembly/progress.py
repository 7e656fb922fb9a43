"""The parts of a trace that close and become final apart from the others: where a parent is
missing, a span is known to be open, or spans never stop arriving.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from otel_reliability.assembly.buffers import TraceBuffer
from otel_reliability.assembly.rebuild import Assembled
from otel_reliability.assembly.span_tree import NONE, is_kept, parent_ref
from otel_reliability.config import AssemblySettings
from otel_reliability.model.span import INVOCATIONS, SpanId, SpanRef, TraceId


class Part:
    """The spans of one unit of a tree, by their indices, and its runs, by theirs.

    - `last`: its last arrival (seconds of the clock). `start`, `end`: its extent (nanoseconds).
      `count`: how many of its spans are more than connections.
    - `has_gap`: a local parent above it is missing; `has_linked`: one above orphans that are linked
      to it is.
    - `is_loose`: it is work that another run may enclose. `is_held`: a span of it is known to be
      open.
    """

    __slots__ = (
        "count",
        "end",
        "has_gap",
        "has_linked",
        "is_held",
        "is_loose",
        "last",
        "runs",
        "spans",
        "start",
    )

    def __init__(self) -> None:
        self.spans: list[int] = []
        self.runs: list[int] = []
        self.last = -inf
        self.start = self.end = self.count = 0
        self.has_gap = self.has_linked = self.is_loose = self.is_held = False

    def finished_at(self, times: AssemblySettings) -> float:
        """Return when it closes if no more of it arrives."""
        return self.last + (times.idle_timeout if self.has_gap else times.linger)

    def final_at(self, buffer: TraceBuffer, built: Assembled, times: AssemblySettings) -> float:
        """Return when it becomes final: `reopen` after the first check that finds it finished, or
        after its last emission.
        """
        finished = self.last + (
            times.idle_timeout if self.has_gap or self.has_linked else times.linger
        )
        checked = next((at for at in buffer.checks if at >= finished), finished)
        emitted = [
            buffer.emitted_at.get(built.runs[number].run_id, checked) for number in self.runs
        ]
        return max([checked, *emitted]) + times.reopen

    def may_change_with(self, other: Part) -> bool:
        """Return whether what still arrives of the other, which is not final, may change this
        part's runs.
        """
        if other.is_loose and other.has_gap:
            return self.start <= other.start and other.end <= self.end
        return self.is_loose and self.has_gap and other.start <= self.start


def divide(  # noqa: C901 (one pass over the spans)
    buffer: TraceBuffer, built: Assembled, opened: Mapping[TraceId, Mapping[SpanId, SpanId | None]]
) -> list[Part]:
    """Return the parts of a trace. `opened`: spans known to have started and not ended, with their
    parents.
    """
    tree = built.tree
    spans = built.tree.spans
    units = built.tree.units
    arrived = {
        (span[0], span[1]): at for span, at in zip(buffer.spans, buffer.arrivals(), strict=True)
    }
    for run in built.orphans.keyed.values():  # all work of a run key is one part
        first = units[run.members[0]]
        same = {units[i] for i in run.members}
        if len(same) > 1:
            units = [first if unit in same else unit for unit in units]
    found: dict[int, Part] = {}
    index_of: dict[SpanRef, int] = {}
    for i, (span, unit) in enumerate(zip(spans, units, strict=True)):
        ref = (span[0], span[1])
        index_of[ref] = i
        if unit == NONE:
            continue
        part = found.get(unit)
        if part is None:
            part = found[unit] = Part()
            part.start = span.start_ns
            part.end = span.end_ns
        part.spans.append(i)
        part.last = max(part.last, arrived[ref])
        if is_kept(span):
            part.count += 1
            part.start, part.end = min(part.start, span.start_ns), max(part.end, span.end_ns)
            if tree.kept_above(i) == NONE:
                top = tree.top_of(i)
                part.has_gap = part.has_gap or tree.has_gap(top)
                part.is_loose = part.is_loose or span.kind not in INVOCATIONS
                missing = parent_ref(spans[top])
                part.is_held = part.is_held or (
                    missing is not None and missing[1] in opened.get(missing[0], ())
                )
    for i in built.orphans.linked:
        found[units[i]].has_linked = True
    for number, root in enumerate(built.roots):
        found[units[root]].runs.append(number)
    for trace_id, parents in opened.items():
        for parent in parents.values():
            unit = _unit_of(trace_id, parent, parents, index_of, units, built)
            if unit != NONE:
                found[unit].is_held = True
    return list(found.values())


def _unit_of(
    trace_id: TraceId,
    parent: SpanId | None,
    opened: Mapping[SpanId, SpanId | None],
    index_of: Mapping[SpanRef, int],
    units: Sequence[int],
    built: Assembled,
) -> int:
    """The unit that an open span belongs to by its chain of parents, or `NONE`."""
    for _ in range(len(opened) + 1):
        at = NONE if parent is None else index_of.get((trace_id, parent), NONE)
        if at != NONE and units[at] != NONE:
            return units[at]
        if at != NONE:
            parent = built.tree.spans[built.tree.top_of(at)].parent_id
        else:
            parent = None if parent is None else opened.get(parent)
    return NONE


def unchangeable(final: list[Part], parts: Sequence[Part]) -> list[Part]:
    """Return those of the final parts that no other part may change, nor a final part that must
    wait for another.
    """
    if not any(part.is_loose and part.has_gap for part in parts):
        return final
    while True:
        others = set(parts).difference(final)
        kept = [part for part in final if not any(part.may_change_with(other) for other in others)]
        if len(kept) == len(final):
            return kept
        final = kept
