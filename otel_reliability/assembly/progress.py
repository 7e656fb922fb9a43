"""Progress of the units of a buffer, where they close and become final one by one: where a
parent is missing, a span is known to be open, or spans never stop arriving.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from otel_reliability.assembly.buffers import TraceBuffer
from otel_reliability.assembly.rebuild import Rebuilt
from otel_reliability.assembly.span_tree import REF, parent_ref
from otel_reliability.assembly.units import Unit
from otel_reliability.config import AssemblySettings
from otel_reliability.model.span import SpanId, SpanRef, TraceId


class Progress:
    """Progress of a unit of an open buffer.

    - `unit`; `runs`: its runs, by their indices. `last`: its last arrival (seconds of the clock).
    - `has_linked`: a local parent is missing above orphans that are linked to it.
    - `is_held`: a span of it is known to be open.
    """

    __slots__ = ("has_linked", "is_held", "last", "runs", "unit")

    def __init__(self, unit: Unit, last: float) -> None:
        self.unit = unit
        self.last = last
        self.runs: list[int] = []
        self.has_linked = self.is_held = False

    def finished_at(self, times: AssemblySettings) -> float:
        """Return when it closes if no more of it arrives."""
        return self.last + (times.idle_timeout if self.unit.has_gap else times.linger)

    def final_at(self, buffer: TraceBuffer, built: Rebuilt, times: AssemblySettings) -> float:
        """Return when it becomes final: `reopen` after the first check that finds it finished, or
        after its last emission.
        """
        finished = self.last + (
            times.idle_timeout if self.unit.has_gap or self.has_linked else times.linger
        )
        checked = next((at for at in buffer.checks if at >= finished), finished)
        emitted = [
            buffer.emitted_at.get(built.runs[number].run_id, checked) for number in self.runs
        ]
        return max([checked, *emitted]) + times.reopen

    def may_change_with(self, other: Progress) -> bool:
        """Return whether what still arrives of the other, which is not final, may change the runs
        of this unit.

        Loose work with a missing parent is linked to the one run that encloses it in time. If the
        other is such work, it matters only where this unit encloses it; if this unit is, any other
        that began no later may come to enclose it.
        """
        mine = self.unit
        theirs = other.unit
        if theirs.is_loose and theirs.has_gap:
            return mine.start_ns <= theirs.start_ns and theirs.end_ns <= mine.end_ns
        return mine.is_loose and mine.has_gap and theirs.start_ns <= mine.start_ns


def progress_of(
    buffer: TraceBuffer, built: Rebuilt, opened: Mapping[TraceId, Mapping[SpanId, SpanId | None]]
) -> list[Progress]:
    """Return how far each unit of a buffer has come. `opened`: spans known to have started and not
    ended, with their parents.
    """
    units = built.units
    refs = list(map(REF, built.tree.spans))
    arrived = dict(zip(map(REF, buffer.spans), buffer.arrivals(), strict=True))
    found: dict[Unit, Progress] = {}
    for together in _closing_together(built):
        unit = Unit.united(together) if len(together) > 1 else together[0]
        progress = Progress(unit, max(arrived[refs[i]] for i in unit.spans))
        found.update(dict.fromkeys(together, progress))
    for i in built.orphans.linked:
        found[units.holding(i)].has_linked = True
    for number, root in enumerate(built.roots):
        found[units.holding(root)].runs.append(number)
    if opened:
        for unit in _held(built, opened, refs):
            found[unit].is_held = True
    return list(dict.fromkeys(found.values()))


def _closing_together(built: Rebuilt) -> Iterable[list[Unit]]:
    """The units of a buffer, each by itself, but those that share work of a run key together."""
    found = {unit: [unit] for unit in built.units}
    for run in built.orphans.keyed.values():
        groups = {id(group := found[built.units.holding(i)]): group for i in run.members}
        if len(groups) > 1:
            together = [unit for group in groups.values() for unit in group]
            found.update(dict.fromkeys(together, together))
    return {id(group): group for group in found.values()}.values()


def _held(
    built: Rebuilt,
    opened: Mapping[TraceId, Mapping[SpanId, SpanId | None]],
    refs: Sequence[SpanRef],
) -> Iterator[Unit]:
    """Yield the units that a span belongs to which is known to be open."""
    tree = built.tree
    for unit in built.units:
        for i in unit.tops:
            missing = parent_ref(tree.spans[tree.top_of(i)])
            if missing is not None and missing[1] in opened.get(missing[0], ()):
                yield unit
    index_of = {ref: i for i, ref in enumerate(refs)}
    for trace_id, parents in opened.items():
        for parent in parents.values():
            unit = _unit_above(trace_id, parent, parents, index_of, built)
            if unit is not None:
                yield unit


def _unit_above(
    trace_id: TraceId,
    parent: SpanId | None,
    opened: Mapping[SpanId, SpanId | None],
    index_of: Mapping[SpanRef, int],
    built: Rebuilt,
) -> Unit | None:
    """The unit that an open span belongs to by its chain of parents."""
    tree = built.tree
    for _ in range(len(opened) + 1):
        at = None if parent is None else index_of.get((trace_id, parent))
        if at is None:
            parent = None if parent is None else opened.get(parent)
        elif (unit := built.units.of[at]) is not None:
            return unit
        else:
            parent = tree.spans[tree.top_of(at)].parent_id
    return None


def unchangeable(final: list[Progress], units: Sequence[Progress]) -> list[Progress]:
    """Return those of the final units that no other unit may change, nor a final unit that must
    wait for another.
    """
    if not any(one.unit.is_loose and one.unit.has_gap for one in units):
        return final
    while True:
        others = set(units).difference(final)
        kept = [one for one in final if not any(one.may_change_with(other) for other in others)]
        if len(kept) == len(final):
            return kept
        final = kept
