"""Runs that continue one that waited for a person.

The framework ends the trace of a run that pauses, and begins another where it goes on. Both are
runs; what makes them one task is the conversation: the next run of the same agent in it goes on
with what waited (`Run.resumes`), and has its task where it names none itself.

Events are changed on their way out, as this needs several traces, and in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from otel_reliability.assembly.memory import FindFinal
from otel_reliability.model.flaws import FIRST_CALL_MISSING
from otel_reliability.model.limit import Limit
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.run import AgentKey, Outcome, Run, RunChange, RunEvent
from otel_reliability.model.span import TraceId

MAX_CONVERSATIONS: Final = 4_096
"""Conversations that are remembered at most; beyond, all are forgotten."""
MAX_RUNS: Final = 8
"""Runs of a conversation that are remembered: the latest to start."""

_Conversation: TypeAlias = tuple[AgentKey, str]

_FINAL: Final = RunChange.FINAL
_WITHDRAWN: Final = RunChange.WITHDRAWN
_REVISED: Final = RunChange.REVISED


class _Known(Struct, eq=False):
    """A run of a conversation. `run` is None once it is final; `resumes`, `task`: as emitted."""

    start_ns: int
    end_ns: int
    run_id: str
    trace_id: TraceId
    is_paused: bool
    own_task: str | None
    run: Run | None
    resumes: str | None = None
    task: str | None = None


_order: Final = attrgetter("start_ns", "run_id")


class Resumptions:
    """Marks the runs that resume another. `sessions`: the limit of sessions, beyond which none is
    remembered here.
    """

    def __init__(self, find_final: FindFinal, sessions: int = MAX_CONVERSATIONS) -> None:
        self._find_final = find_final
        self._runs = Remembered[_Conversation, dict[str, _Known]](min(sessions, MAX_CONVERSATIONS))

    def pass_on(self, events: Iterable[RunEvent]) -> list[RunEvent]:
        """Return the events as they are emitted."""
        found: list[RunEvent] = []
        for event in events:
            run = event.run
            previous = event.previous
            passed = event
            left: dict[str, _Known] = {}
            moved: _Known | None = None
            if previous is not None and _place(previous) != _place(run):
                left = self._runs.get(_place(previous), {})
                moved = left.pop(run.run_id, None)
            if previous is not None and moved is not None:
                passed = RunEvent(event.change, run, _marked(previous, moved))
            if run.nested or run.session_id is None:
                found.append(passed)
            else:
                found += self._changed(passed, run.session_id)
            if _has_paused(left):  # runs of the conversation that it was of
                found += self._others(left, run.run_id)
        return found

    def restore_final(self, run: Run) -> None:
        """Remember a run that became final before a restart."""
        if run.session_id is not None and not run.nested:
            runs = self._of(_place(run))
            if run.run_id not in runs:
                known = _known(run, None)
                known.resumes = run.resumes
                _add(known, runs)

    def forget(self, run: Run) -> None:
        """Forget a final run, which no later one resumes."""
        runs = self._runs.get(_place(run), {})
        runs.pop(run.run_id, None)
        if not runs:
            self._runs.pop(_place(run), None)

    @property
    def limit(self) -> Limit:
        """The conversations that are remembered; a hit is one that was forgotten."""
        known = self._runs
        return Limit("conversations", len(known), known.most, known.forgotten)

    def _of(self, conversation: _Conversation) -> dict[str, _Known]:
        runs = self._runs.get(conversation)
        if runs is None:
            runs = self._runs[conversation] = {}
        return runs

    def _changed(self, event: RunEvent, session: str) -> Iterator[RunEvent]:
        run = event.run
        runs = self._of((run.key, session))
        known = runs.get(run.run_id)
        previous = event.previous
        if known is not None and previous is not None:
            previous = _marked(previous, known)
        if event.change is _WITHDRAWN:
            runs.pop(run.run_id, None)
            yield event if known is None else RunEvent(_WITHDRAWN, _marked(run, known))
        else:
            is_final = event.change is _FINAL or (known is not None and known.run is None)
            known = _known(run, None if is_final else run)
            _add(known, runs)
            if _has_paused(runs):
                _resume(known, runs)
            yield RunEvent(event.change, _marked(run, known), previous)
        if _has_paused(runs):
            yield from self._others(runs, run.run_id)

    def _others(self, runs: dict[str, _Known], run_id: str) -> Iterator[RunEvent]:
        """Yield the other runs of a conversation that a run changes, in their order: a task is
        passed on.
        """
        for one in sorted(runs.values(), key=_order):
            if one.run_id == run_id:
                continue
            before = one.resumes, one.task
            _resume(one, runs)
            if before == (one.resumes, one.task):
                continue
            run = one.run or self._find_final(one.trace_id, one.run_id)
            if run is not None:
                earlier = _resuming(run, *before)
                yield RunEvent(_REVISED, _marked(run, one), earlier)


def _add(known: _Known, runs: dict[str, _Known]) -> None:
    """Add a run to those of its conversation; beyond the limit, the first to start is forgotten."""
    runs[known.run_id] = known
    if len(runs) > MAX_RUNS:
        del runs[min(runs.values(), key=_order).run_id]


def _has_paused(runs: dict[str, _Known]) -> bool:
    return any(one.is_paused or one.resumes for one in runs.values())


def _known(run: Run, held: Run | None) -> _Known:
    return _Known(
        start_ns=run.start_ns,
        end_ns=run.end_ns,
        run_id=run.run_id,
        trace_id=run.trace_id,
        is_paused=run.outcome is Outcome.PAUSED,
        own_task=run.task_id,
        run=held,
        task=run.task_id,
    )


def _place(run: Run) -> _Conversation:
    return run.key, run.session_id or ""


def _resume(one: _Known, runs: dict[str, _Known]) -> None:
    """Find what a run resumes: the run before it, where that waits."""
    earlier = [other for other in runs.values() if _order(other) < _order(one)]
    before = max(earlier, key=_order, default=None)
    one.resumes = None
    one.task = one.own_task
    if before is not None and before.is_paused and before.end_ns <= one.start_ns:
        one.resumes = before.run_id
        one.task = one.own_task or before.task


def _marked(run: Run, known: _Known) -> Run:
    """Return a run with what it resumes."""
    return _resuming(run, known.resumes, known.task)


def _resuming(run: Run, resumes: str | None, task: str | None) -> Run:
    """Return a run that resumes another, of a task: then it is known where it begins."""
    if (run.resumes, run.task_id) == (resumes, task):
        return run
    flaws = run.flaws
    if resumes is not None and FIRST_CALL_MISSING in flaws:
        flaws = tuple([kind for kind in flaws if kind != FIRST_CALL_MISSING])
    return replace(run, resumes=resumes, task_id=task, flaws=flaws)
