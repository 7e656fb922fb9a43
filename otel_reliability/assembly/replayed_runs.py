"""Runs that a durable engine reports again in another trace.

`replays` finds the attempts at a run within one trace. An engine that restarts on another machine,
or days later, begins a new trace, and makes spans again of the steps whose results it has. Such
runs share the id that a provider gave to their first step. So do the runs that an exporter sent
twice, under other ids of spans; where their steps have no ids, they share the times of their first.
In one conversation they are one run where the steps of one are all among those of the other: it has
the id of the first, and the content of the one with most steps.

An id alone proves nothing: fixtures answer every request with the same id, and caches repeat whole
answers. So runs that are asked something else, whose first step differs, or that belong to unlike
conversations are runs of their own. Where nothing names the conversation, no tokens are known, or
each has a step that the other lacks, it cannot be known: both say so (`REPLAYS`).

Events are changed on their way out, as this needs several traces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.assembly.memory import FindFinal, with_evaluation
from otel_reliability.config import OutcomeSettings
from otel_reliability.model.flaws import REPLAYS, RUN_REPLAYED
from otel_reliability.model.limit import Limit
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.run import ModelCall, Run, RunChange, RunEvent, ToolCall
from otel_reliability.model.span import TraceId

MAX_FIRST_STEPS: Final = 32_768
"""First steps of runs that are remembered; beyond, all are forgotten."""
MAX_ALIKE: Final = 16
"""Runs with one first step that are compared. Further ones of a conversation say that it cannot be
known; without a conversation an id that so many runs have identifies nothing.
"""
MAX_HELD: Final = 4_096
"""Runs that are held because another has their first step; beyond, all are forgotten."""


_ORDER: Final = attrgetter("start_ns", "run_id")
_CLOSED: Final = RunChange.CLOSED
_REVISED: Final = RunChange.REVISED
_WITHDRAWN: Final = RunChange.WITHDRAWN
_FINAL: Final = RunChange.FINAL


class _Alone(Struct, frozen=True, eq=False, gc=False):
    """The one run with a first step; `run` is None once it is final."""

    trace_id: TraceId
    run_id: str
    run: Run | None


class _Alike(Struct, eq=False):
    """Runs with one first step, by run id: as they were rebuilt, as those that may be one and say
    so, and as they were emitted. `ended`: those that can change no more; `final`: those that were
    emitted as such.
    """

    emitted: dict[str, Run]
    ended: set[str]
    final: set[str]
    runs: dict[str, Run] = {}
    uncertain: dict[str, Run] = {}

    def add(self, run: Run) -> None:
        """Add a run, or its new version."""
        self.runs[run.run_id] = run
        self.uncertain[run.run_id] = _uncertain(run)

    def remove(self, run_id: str) -> None:
        """Remove a run, if it is here."""
        self.runs.pop(run_id, None)
        self.uncertain.pop(run_id, None)


class ReplayedRuns:
    """Changes the events of runs that are reported again."""

    def __init__(self, settings: OutcomeSettings, find_final: FindFinal) -> None:
        self._settings = settings
        self._find_final = find_final
        self._known = Remembered[int | None, _Alone | _Alike](MAX_FIRST_STEPS)
        self._held = 0

    def pass_on(self, events: Iterable[RunEvent]) -> list[RunEvent]:
        """Return the events as they are emitted."""
        found: list[RunEvent] = []
        for event in events:
            previous = event.previous
            run = event.run
            if previous is not None and (_key(previous) != _key(run) or self._is_parted(run)):
                found += self._moved(event, previous)
            elif run.first_step is None:
                found.append(event)
            else:
                found += self._changed(event)
        return found

    def restore_final(self, run: Run) -> None:
        """Remember a run that became final before a restart."""
        if run.first_step is not None and _key(run) not in self._known:
            self._known[_key(run)] = _Alone(run.trace_id, run.run_id, None)

    def forget(self, run: Run) -> None:
        """Forget a final run, which no later one reports again, unless it is one of several."""
        known = self._known.get(_key(run))
        if isinstance(known, _Alone) and known.run_id == run.run_id:
            del self._known[_key(run)]

    @property
    def limit(self) -> Limit:
        """The first steps that are remembered; a hit is one that was forgotten."""
        known = self._known
        return Limit("first_steps", len(known), known.most, known.forgotten)

    def _moved(self, event: RunEvent, previous: Run) -> list[RunEvent]:
        """Return what changes with a run that has another first step, or conversation, than
        before.
        """
        run = event.run
        before = None if previous.first_step is None else self._known.get(_key(previous))
        after = None if run.first_step is None else self._known.get(_key(run))
        if isinstance(before, _Alike) or self._may_join(after, run):
            return self.pass_on([RunEvent(_WITHDRAWN, previous), RunEvent(_CLOSED, run)])
        if before is not None and before.run_id == previous.run_id:
            del self._known[_key(previous)]
            is_final = before.run is None
            if run.first_step is not None and after is None:
                self._known[_key(run)] = _Alone(run.trace_id, run.run_id, None if is_final else run)
        return [event]

    def _is_parted(self, run: Run) -> bool:
        """Return whether a run is no longer like those that it was held to be one with: its root,
        or further steps, arrived.
        """
        known = self._known.get(_key(run))
        if not isinstance(known, _Alike) or run.run_id not in known.runs:
            return False
        others = [one for one in known.runs.values() if one.run_id != run.run_id]
        can_change = known.ended.isdisjoint(known.runs)
        return can_change and not all(_are_alike(one, run) for one in others)

    def _may_join(self, known: _Alone | _Alike | None, run: Run) -> bool:
        """Return whether a run may be one with those that are known to have its first step."""
        if isinstance(known, _Alike):
            return _are_alike(next(iter(known.runs.values()), run), run)
        other = None if known is None else known.run
        return other is not None and _are_alike(other, run)

    def _changed(self, event: RunEvent) -> Iterable[RunEvent]:
        run = event.run
        key = _key(run)
        known = self._known.get(key)
        if isinstance(known, _Alike):
            if run.run_id in known.runs:
                return self._together(known, event)
            first = next(iter(known.runs.values()), run)
            is_full = len(known.runs) >= MAX_ALIKE
            is_no_id = is_full and run.session_id is None
            if event.change is _WITHDRAWN or is_no_id or not _are_alike(first, run):
                return (event,)
            if is_full:
                return (RunEvent(event.change, _uncertain(run), event.previous),)
            self._held += 1
            return self._together(known, event)
        if known is None or known.run_id == run.run_id:
            self._note(key, event, known)
            return (event,)
        if known.trace_id == run.trace_id or event.change is _WITHDRAWN:
            return (event,)
        return self._begun_alike(key, known, event)

    def _begun_alike(self, key: int | None, known: _Alone, event: RunEvent) -> Iterable[RunEvent]:
        """Return what an event changes of a run with the first step of another."""
        run = event.run
        other = known.run or self._find_final(known.trace_id, known.run_id)
        if other is None and run.session_id is not None:
            return (RunEvent(event.change, _uncertain(run), event.previous),)
        if other is None or not _are_alike(other, run):
            return (event,)
        if self._held >= MAX_HELD:
            self._known.forget()
            self._held = 0
        self._held += 2
        ended = {other.run_id} if known.run is None else set[str]()
        both = self._known[key] = _Alike({other.run_id: other}, ended, set(ended))
        both.add(other)
        return self._together(both, event)

    def _note(self, key: int | None, event: RunEvent, known: _Alone | None) -> None:
        """Remember the only run with its first step."""
        run = event.run
        if event.change is _WITHDRAWN:
            self._known.pop(key, None)
            return
        is_final = event.change is _FINAL or (known is not None and known.run is None)
        self._known[key] = _Alone(run.trace_id, run.run_id, None if is_final else run)

    def _together(self, known: _Alike, event: RunEvent) -> Iterator[RunEvent]:
        """Yield what an event of one of several runs changes."""
        run = event.run
        if event.change is _WITHDRAWN:
            known.remove(run.run_id)
        else:
            known.add(run)
        if event.change is _FINAL:
            known.ended.add(run.run_id)
        emitted = known.emitted
        becoming_final = known.ended - known.final
        shown = self._as_one(known)
        for run_id in [run_id for run_id in emitted if run_id not in shown]:
            yield RunEvent(_WITHDRAWN, emitted.pop(run_id))
        for run_id, one in shown.items():
            before = emitted.get(run_id)
            if before is None:
                yield RunEvent(_CLOSED, one)
            elif before is not one and before != one:
                yield RunEvent(_REVISED, one, before)
            emitted[run_id] = one
            if run_id in becoming_final:
                known.final.add(run_id)
                yield RunEvent(_FINAL, one)

    def _as_one(self, known: _Alike) -> dict[str, Run]:
        """Return the runs that several are, by id. One of several attempts has the id of that which
        was emitted as final, else of the first.
        """
        ordered = sorted(known.runs.values(), key=_ORDER)
        if len(ordered) < 2:
            return {run.run_id: run for run in ordered}
        if ordered[0].session_id is None or not all(map(_has_tokens, ordered)):
            return {run.run_id: known.uncertain[run.run_id] for run in ordered}
        steps = [_steps(run) for run in ordered]

        def rank(at: int) -> tuple[int, bool, int]:
            return (steps[at].total(), not ordered[at].implicit, -at)

        attempts: dict[int, list[Run]] = {}
        for run, own in zip(ordered, steps, strict=True):
            whole = max([at for at, other in enumerate(steps) if own <= other], key=rank)
            attempts.setdefault(whole, []).append(run)
        found: dict[str, Run] = {}
        for at, group in attempts.items():
            named = next((run for run in group if run.run_id in known.final), group[0])
            one = self._whole(ordered[at], group, named)
            found[one.run_id] = one if len(attempts) == 1 else _uncertain(one)
        return found

    def _whole(self, run: Run, attempts: list[Run], named: Run) -> Run:
        """Return the run of several attempts: `run`, which has all steps. `named`: the one whose
        ids it has.
        """
        if len(attempts) == 1:
            return run
        for one in attempts:
            for evaluation in one.evaluations:
                run = with_evaluation(run, evaluation, self._settings)
        return replace(
            run,
            run_id=named.run_id,
            trace_id=named.trace_id,
            root_span_id=named.root_span_id,
            start_ns=min(one.start_ns for one in attempts),
            flaws=(*(kind for kind in run.flaws if kind != RUN_REPLAYED), RUN_REPLAYED),
        )


def _key(run: Run) -> int | None:
    """Return what runs that may be one have in common; None without a first step."""
    if run.first_step is None:
        return None
    return hash((run.key.service, run.session_id, run.nested, run.first_step))


def _are_alike(one: Run, other: Run) -> bool:
    """Return whether two runs with the same first step, of one conversation, may be one. The name
    of one without a root is not known.
    """
    if one.trace_id == other.trace_id or one.session_id != other.session_id:
        return False
    if one.key != other.key and not (one.implicit or other.implicit):
        return False
    if (one.task_id, one.trial, one.condition) != (other.task_id, other.trial, other.condition):
        return False
    if None not in (one.request, other.request) and one.request != other.request:
        return False
    if one.session_id is None:
        return _steps(one) == _steps(other)
    first = [_first(run) for run in (one, other)]
    return None in first or first[0] == first[1]


def _first(run: Run) -> tuple[object, ...] | None:
    """Return the first model call of a run that succeeded."""
    return next((_used(call) for call in run.model_calls if not call.failed), None)


def _has_tokens(run: Run) -> bool:
    """Return whether the content of a run is known well enough to be compared: ids of calls are
    repeated by some models.
    """
    return any(call.tokens is not None for call in run.model_calls)


def _uncertain(run: Run) -> Run:
    return run if REPLAYS in run.flaws else replace(run, flaws=(*run.flaws, REPLAYS))


def _steps(run: Run) -> Counter[tuple[object, ...]]:
    """Return the steps of a run, each as every attempt reports it. Those that failed are executed
    again.
    """
    models = [_used(call) for call in run.model_calls if not call.failed]
    return Counter([*models, *[_made(call) for call in run.tool_calls or () if call.ok]])


def _used(call: ModelCall) -> tuple[object, ...]:
    return (call.model, call.input_tokens, call.output_tokens)


def _made(call: ToolCall) -> tuple[object, ...]:
    return (call.name, call.arguments)
