"""Work whose parent never came: the one run of its trace that encloses it in time takes it in."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Iterable
from itertools import count

from otel_reliability.assembly.build import Built
from otel_reliability.assembly.unit import RUN_KEYS, Implicit, SpanKey, Trace, Unit, Verdict
from otel_reliability.model.span import TraceId


def hosts(units: Iterable[Unit]) -> dict[Unit, tuple[Unit, SpanKey]]:
    """For each closed unit that some run adopts, whose run that is, and the run's root.

    The longest are decided first, and only what is itself adopted by nobody adopts others: so who adopts whom does not depend
    on the order in which they came, and goes in no circle.
    """
    closed = [unit for unit in units if unit.closed_at is not None]
    adoptable = sorted(
        (unit for unit in closed if unit.is_adoptable),
        key=lambda unit: (unit.extent[0], -unit.extent[1], unit.trace.id, unit.stand_in),
    )
    found: dict[Unit, tuple[Unit, SpanKey]] = {}
    enclosing = _Enclosing(unit for unit in closed if not unit.is_adoptable)
    for unit in adoptable:
        host = enclosing.only(*unit.extent)
        if host is None:
            enclosing.add(unit)
        else:
            found[unit] = host
    return found


class _Enclosing:
    """Top-level runs, asked for the one that encloses a stretch of time. Stretches must come in the order of their starts."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._ticket = count()
        self._ahead: list[tuple[int, int, int, Unit, SpanKey]] = []
        self._longest: list[tuple[int, int, Unit, SpanKey]] = []
        for unit in units:
            self.add(unit)

    def add(self, unit: Unit) -> None:
        for start, end, root in unit.tops:
            heapq.heappush(self._ahead, (start, end, next(self._ticket), unit, root))

    def only(self, start: int, end: int) -> tuple[Unit, SpanKey] | None:
        """The one run from `start` or before to `end` or after, None where there is none or there are several."""
        while self._ahead and self._ahead[0][0] <= start:
            _, run_end, ticket, unit, root = heapq.heappop(self._ahead)
            self._longest = sorted([*self._longest, (run_end, ticket, unit, root)], reverse=True)[:2]
        around = [(unit, root) for last, _, unit, root in self._longest if last >= end]
        return around[0] if len(around) == 1 else None


def joined(trace: Trace) -> list[Trace]:
    """The trace and those that messaging hops join to it: they are one to whatever is decided about a trace."""
    found = {trace.id: trace}
    pending = [trace]
    while pending:
        for unit in pending.pop().units:
            for other in unit.traces if len(unit.traces) > 1 else ():
                if other.id not in found and other.id != RUN_KEYS:
                    found[other.id] = other
                    pending.append(other)
    return list(found.values())


def stands_alone(trace: Trace) -> bool:
    """Whether no other trace has a part in this one, nor it in another."""
    return (
        not (trace.hopped or trace.hanging)
        and all(_lies_in(unit, trace) for unit in trace.units)
        and all(place.parent is None or place.parent[0] == trace.id for place in trace.places.values())
    )


def _lies_in(unit: Unit, trace: Trace) -> bool:
    return len(unit.traces) == 1 and unit.anchor[0] == trace.id and (unit.missing or unit.anchor)[0] == trace.id


class Decision:
    """What becomes of loose work in traces that are one: adopted, a run of its own, or nobody's."""

    def __init__(self, traces: Iterable[Trace], units: Collection[Unit]) -> None:
        self._agents = {name for trace in traces for name in trace.agents} | {
            name for unit in units for name in unit.agents
        }
        self._hosts = hosts(units)
        self._beside = any(trace.has_invocation for trace in traces) or any(unit.invocations for unit in units)

    def about(self, unit: Unit) -> Verdict:
        """The verdict on one of the units."""
        host = self._hosts.get(unit)
        if host is not None:
            return Verdict(*host, None, self._beside)
        return Verdict(None, None, self._implicit(unit), self._beside)

    def _implicit(self, unit: Unit) -> Implicit | None:
        """How work with no invocation above becomes a run of its own, None where it is nobody's."""
        if unit.anchor[0] == RUN_KEYS:
            return Implicit(unit.stand_in, None, incomplete=False)
        if unit.has_local_gap:
            return Implicit(unit.stand_in, self._only_agent(), incomplete=True)
        return None if self._beside or not unit.loose_calls else Implicit(unit.stand_in, None, incomplete=False)

    def _only_agent(self) -> str | None:
        return next(iter(self._agents)) if len(self._agents) == 1 else None


class OpenWork:
    """Which closed units may still change because of what is open beside them, asked once a trace."""

    def __init__(self, opened: Container[Unit]) -> None:
        self._open = opened
        self._known: dict[TraceId, tuple[bool, bool]] = {}

    def may_change(self, unit: Unit) -> bool:
        """A run may come to adopt what has a gap above it; what has a gap may come to be adopted by any run."""
        found = [self._of(trace) for trace in unit.traces]
        return any(with_gap for _, with_gap in found) or (unit.is_adoptable and any(any_open for any_open, _ in found))

    def _of(self, trace: Trace) -> tuple[bool, bool]:
        known = self._known.get(trace.id)
        if known is None:
            units = [unit for near in joined(trace) for unit in near.units if unit in self._open]
            known = bool(units), any(unit.is_loose and unit.has_local_gap for unit in units)
            self._known[trace.id] = known
        return known


def note(unit: Unit, built: Built) -> None:
    """What is to be known of a unit when the fate of loose work is decided."""
    unit.loose, unit.loose_calls = built.loose, built.loose_calls
    unit.agents, unit.invocations = built.agents, built.invocations
    unit.tops = tuple(
        (run.start_ns, run.end_ns, unit.key(run.trace_id, run.root_span_id))
        for run in built.runs
        if not run.nested and run.root_span_id is not None
    )
    if built.loose:
        spans = unit.spans.values()
        unit.extent = min(span.start_ns for span in spans), max(span.end_ns for span in spans)


def give(unit: Unit, verdict: Verdict) -> list[Unit]:
    """Decide about a unit's loose work. Gives the units whose runs this changes."""
    former = unit.host
    if former is not None:
        del former.guests[unit]
    unit.verdict = verdict
    if verdict.host is not None:
        verdict.host.guests[unit] = None
    return [other for other in (former, verdict.host, unit) if other is not None]
