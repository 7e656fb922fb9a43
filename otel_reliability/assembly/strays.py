"""Tool calls whose trace was split off: they lie in traces of their own, beside agents of the same
service.

Some instrumentations lose the context where a tool is called, so that its span has no parent. Alone
it would be a run of an agent named after the service. Where the service has an agent, it is none:
it belongs to a run of that agent, but nothing says to which. A run without a call that encloses it
in time may have made it, so the calls of that run cannot be observed; its path is not empty.

A workflow at the top that names its conversation, and has nothing below it, lost all of its steps
that way. It is a run where it encloses such a call, else an empty container, and none.

What is known of a service depends on what has arrived: events are changed on their way out, and
runs that can still change are emitted again. Runs of a file become final before the file ends, so
those that a later trace may concern are held until then.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from otel_reliability.assembly.accounts import BESIDE_AGENT, NO_RUN, USED, Account
from otel_reliability.model.flaws import LAST_NS, SPLIT_TRACE
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.run import Run, RunChange, RunEvent, ServiceKey, Tools

MAX_SERVICES: Final = 16_384
MAX_STRAYS: Final = 1_000
"""Calls without an agent that are remembered of a service, the latest."""
MAX_HELD: Final = 10_000
"""Runs of a file that wait for its end; beyond, the oldest are final as they are."""

_CLOSED: Final = RunChange.CLOSED
_FINAL: Final = RunChange.FINAL
_WITHDRAWN: Final = RunChange.WITHDRAWN


class _Emitted(NamedTuple):
    """A run as it was rebuilt, and as it was emitted (None: it is no run)."""

    run: Run
    seen: Run | None


class ServiceRuns:
    """The runs of one service that concern one another.

    - `has_agent`: it had a run with a root. `strays`: the extents of calls without an agent, by run
      id.
    - `calls`: the runs of such calls that can still change, `empty`: those with a root and no known
      call.
    """

    __slots__ = ("calls", "empty", "has_agent", "strays")

    def __init__(self) -> None:
        self.has_agent = False
        self.strays: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self.calls: dict[str, _Emitted] = {}
        self.empty: dict[str, _Emitted] = {}

    def remember(self, stray: Run) -> None:
        self.strays[stray.run_id] = (stray.start_ns, stray.end_ns)
        if len(self.strays) > MAX_STRAYS:
            self.strays.popitem(last=False)

    def is_around_stray(self, run: Run) -> bool:
        """Return whether a run encloses a call without an agent; one that shows no step at all has
        lost its own, and may have made any that began after it.
        """
        start = run.start_ns
        is_bare = not (run.model_calls or is_hollow(run))
        end = LAST_NS if is_bare else run.end_ns
        return any(start <= since and until <= end for since, until in self.strays.values())

    def seen(self, run: Run) -> Run | None:
        """Return a run as what is known of its service shows it; None where it is no run."""
        if run.nested or run.incomplete:
            return run
        if is_stray(run):
            return None if self.has_agent else run
        if not is_empty(run):
            return run
        if is_hollow(run):
            return run if self.is_around_stray(run) else None
        if not self.strays or not self.is_around_stray(run):
            return run
        flaws = (*run.flaws, SPLIT_TRACE)
        return replace(run, path=None, tools=Tools.UNOBSERVABLE, tool_calls=None, flaws=flaws)

    def concerns(self, run: Run) -> bool:
        """Return whether a run that closes or is final may change other runs, or what is known of
        them it: not where the service has an agent, and calls of the run are known.
        """
        if not self.has_agent or is_stray(run) or is_empty(run):
            return True
        run_id = run.run_id
        return run_id in self.strays or run_id in self.calls or run_id in self.empty

    def take(self, event: RunEvent) -> tuple[Run | None, bool]:
        """Return the run of an event as it was emitted before (None: it was not), and whether it
        can still change by other runs. A run that was evaluated after it was final cannot.
        """
        run = event.run
        previous = event.previous
        known = self.calls.pop(run.run_id, None) or self.empty.pop(run.run_id, None)
        if known is not None:
            return known.seen, True
        if previous is not None:
            return self.seen(previous), not (is_stray(previous) or is_empty(previous))
        return (None if event.change is _CLOSED else run), True


def is_stray(run: Run) -> bool:
    """Return whether a run consists of calls that have no parent and no agent above them."""
    return run.implicit and not run.incomplete


def is_empty(run: Run) -> bool:
    """Return whether a run has a root, is in no other one, and no call of it is known."""
    return not run.implicit and not run.path and not run.nested


def is_hollow(run: Run) -> bool:
    """Return whether a run, as rebuilt, is a workflow that lost all of its steps."""
    return SPLIT_TRACE in run.flaws and not run.implicit


def count_hollow(accounts: Counter[Account], run: Run) -> None:
    """Count the spans of a workflow without steps that is no run."""
    accounts[USED] -= run.span_count
    accounts[NO_RUN] += run.span_count


class Strays:
    """Changes the events of runs of services that lose the parents of their tool calls.

    `accounts`: spans by what became of them; those of calls beside an agent are used by none.
    """

    def __init__(self, accounts: Counter[Account]) -> None:
        self._accounts = accounts
        self._services = Remembered[ServiceKey, ServiceRuns](MAX_SERVICES)
        self._held: OrderedDict[str, Run] = OrderedDict()

    def pass_on(self, events: Iterable[RunEvent], *, hold: bool = False) -> list[RunEvent]:
        """Return the events as they are emitted. `hold`: runs that a later trace may concern become
        final at `release`.
        """
        found: list[RunEvent] = []
        for event in events:
            run = event.run
            if hold and event.change is _FINAL and (is_stray(run) or is_empty(run)):
                self._held[run.run_id] = run
                if len(self._held) > MAX_HELD:
                    oldest = self._held.popitem(last=False)[1]
                    found.extend(self._changed(RunEvent(_FINAL, oldest)))
            elif run.run_id in self._held and event.change is RunChange.REVISED:
                self._held[run.run_id] = run
                found.extend(self._changed(event))
            else:
                found.extend(self._changed(event))
        return found

    def release(self) -> list[RunEvent]:
        """Return the events of the runs that were held."""
        held = self._held
        self._held = OrderedDict()
        return self.pass_on([RunEvent(_FINAL, run) for run in held.values()])

    def _changed(self, event: RunEvent) -> Iterable[RunEvent]:
        """Return what an event changes."""
        known = self._runs_beside(event.run)
        if (event.change is _CLOSED or event.change is _FINAL) and not known.concerns(event.run):
            return (event,)
        return self._changed_beside(known, event)

    def _changed_beside(self, known: ServiceRuns, event: RunEvent) -> Iterator[RunEvent]:
        """Yield what an event changes: other runs of its service first where an agent is new, else
        the run itself.
        """
        change = event.change
        run = event.run
        emitted, can_change = known.take(event)
        is_call = change is not _WITHDRAWN and is_stray(run)
        if is_call:
            known.remember(run)
            is_changed = True
        else:
            is_changed = known.strays.pop(run.run_id, None) is not None
        seen = None if change is _WITHDRAWN else known.seen(run)
        if seen is not None and not (is_call or run.nested or run.incomplete):
            yield from _agent_found(known)
        yield from _differences(emitted, seen)
        if change is _FINAL:
            yield from self._final(run, seen)
        elif can_change and change is not _WITHDRAWN and (is_call or is_empty(run)):
            (known.calls if is_call else known.empty)[run.run_id] = _Emitted(run, seen)
        if is_changed:
            yield from _revised(known)

    def _runs_beside(self, run: Run) -> ServiceRuns:
        service = run.key.service
        known = self._services.get(service)
        if known is None:
            known = self._services[service] = ServiceRuns()
        return known

    def _final(self, run: Run, seen: Run | None) -> Iterable[RunEvent]:
        """Return the event of a run that is final; count the spans of one that is none."""
        if seen is not None:
            return (RunEvent(_FINAL, seen),)
        if is_hollow(run):
            count_hollow(self._accounts, run)
        else:
            self._accounts[USED] -= run.span_count
            self._accounts[BESIDE_AGENT] += run.span_count
        return ()


def _agent_found(known: ServiceRuns) -> Iterator[RunEvent]:
    """Yield that the calls of a service are no runs, as it has an agent."""
    if not known.has_agent:
        known.has_agent = True
        for run_id, (run, emitted) in known.calls.items():
            known.calls[run_id] = _Emitted(run, None)
            yield from _differences(emitted, None)


def _revised(known: ServiceRuns) -> Iterator[RunEvent]:
    """Yield what calls without an agent, which have changed, change in runs with a root."""
    for run_id, (run, emitted) in known.empty.items():
        seen = known.seen(run)
        if seen != emitted:
            known.empty[run_id] = _Emitted(run, seen)
            if seen is not None:
                yield from _agent_found(known)
            yield from _differences(emitted, seen)


def _differences(emitted: Run | None, seen: Run | None) -> Iterator[RunEvent]:
    """Yield the change of a run from what was emitted to what is to be."""
    if emitted is None and seen is not None:
        yield RunEvent(_CLOSED, seen)
    elif emitted is not None and seen is None:
        yield RunEvent(_WITHDRAWN, emitted)
    elif emitted is not None and seen is not None and emitted is not seen and emitted != seen:
        yield RunEvent(RunChange.REVISED, seen, emitted)
