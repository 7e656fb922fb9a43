"""Tool calls whose trace was split off: they lie in traces of their own, beside agents of the same
service.

Some instrumentations lose the context where a tool is called, so that its span has no parent. Alone
it would be a run of an agent named after the service. Where the service has an agent, it is none:
it belongs to a run of that agent, but nothing says to which. A run without a call that encloses it
in time may have made it, so the calls of that run cannot be observed; its path is not empty.

What is known of a service depends on what has arrived: events are changed on their way out, and
runs that can still change are emitted again. Runs of a file become final before the file ends, so
those that a later trace may concern are held until then.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from otel_reliability.assembly.accounts import BESIDE_AGENT, USED, Account
from otel_reliability.model.flaws import SPLIT_TRACE
from otel_reliability.model.remembered import Remembered
from otel_reliability.model.run import Run, RunChange, RunEvent, Tools

Service: TypeAlias = tuple[str, str, str]
"""Namespace, name and environment."""

MAX_SERVICES: Final = 16_384
MAX_STRAYS: Final = 1_000
"""Calls without an agent that are remembered of a service, the latest."""
MAX_HELD: Final = 10_000
"""Runs of a file that wait for its end; beyond, the oldest are final as they are."""

_FINAL: Final = RunChange.FINAL
_WITHDRAWN: Final = RunChange.WITHDRAWN


class ServiceRuns:
    """The runs of one service that concern one another.

    - `has_agent`: it had a run with a root. `strays`: the extents of calls without an agent, by run
      id. `open`: runs of such calls that were emitted, and can still be withdrawn. `empty`: runs
      that were seen to make no call, and can still be revised, each as rebuilt and as emitted.
    """

    __slots__ = ("empty", "has_agent", "open", "strays")

    def __init__(self) -> None:
        self.has_agent = False
        self.strays: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self.open: dict[str, Run] = {}
        self.empty: dict[str, tuple[Run, Run]] = {}

    def remember(self, stray: Run) -> None:
        self.strays[stray.run_id] = (stray.start_ns, stray.end_ns)
        if len(self.strays) > MAX_STRAYS:
            self.strays.popitem(last=False)

    def seen(self, run: Run) -> Run:
        """Return a run with what is known of its service."""
        if not self.strays or not is_empty(run):
            return run
        start = run.start_ns
        end = run.end_ns
        if not any(start <= since and until <= end for since, until in self.strays.values()):
            return run
        flaws = (*run.flaws, SPLIT_TRACE)
        return run._replace(path=None, tools=Tools.UNOBSERVABLE, tool_calls=None, flaws=flaws)


def is_stray(run: Run) -> bool:
    """Return whether a run consists of calls that have no parent and no agent above them."""
    return run.implicit and not run.incomplete


def is_empty(run: Run) -> bool:
    """Return whether a run has a root and was seen to make no call."""
    return not run.implicit and run.tools is Tools.OBSERVED and not run.path


class Strays:
    """Changes the events of runs of services that lose the parents of their tool calls.

    `accounts`: spans by what became of them; those of calls beside an agent are used by none.
    """

    def __init__(self, accounts: Counter[Account]) -> None:
        self._accounts = accounts
        self._services = Remembered[Service, ServiceRuns](MAX_SERVICES)
        self._held: OrderedDict[str, Run] = OrderedDict()

    def pass_on(self, events: Iterable[RunEvent], *, hold: bool = False) -> list[RunEvent]:
        """Return the events as they are emitted. `hold`: runs that a later trace may concern become
        final at `release`.
        """
        found: list[RunEvent] = []
        for event in events:
            run = event.run
            if run.nested or run.incomplete:
                found.append(event)
            elif hold and event.change is _FINAL and (is_stray(run) or is_empty(run)):
                self._held[run.run_id] = run
                if len(self._held) > MAX_HELD:
                    oldest = self._held.popitem(last=False)[1]
                    found.extend(self._changed(RunEvent(_FINAL, oldest)))
            else:
                found.extend(self._changed(event))
        return found

    def release(self) -> list[RunEvent]:
        """Return the events of the runs that were held."""
        held = self._held
        self._held = OrderedDict()
        return self.pass_on([RunEvent(_FINAL, run) for run in held.values()])

    def _changed(self, event: RunEvent) -> Iterable[RunEvent]:
        key = event.run.key
        service = (key.service_namespace, key.service_name, key.environment)
        known = self._services.get(service)
        if known is None:
            known = self._services[service] = ServiceRuns()
        return self._of_stray(known, event) if is_stray(event.run) else _of_agent(known, event)

    def _of_stray(self, known: ServiceRuns, event: RunEvent) -> Iterator[RunEvent]:
        """Yield the events that follow from one of a call without an agent."""
        change, run, _ = event
        run_id = run.run_id
        if change is _WITHDRAWN:
            known.strays.pop(run_id, None)
        else:
            known.remember(run)
        if run_id in known.open or not known.has_agent:
            yield event
            if change in (_WITHDRAWN, _FINAL):
                known.open.pop(run_id, None)
            else:
                known.open[run_id] = run
        elif change is _FINAL:
            self._accounts[USED] -= run.span_count
            self._accounts[BESIDE_AGENT] += run.span_count
        for empty_id, (rebuilt, emitted) in known.empty.items():
            seen = known.seen(rebuilt)
            if seen != emitted:
                known.empty[empty_id] = rebuilt, seen
                yield RunEvent(RunChange.REVISED, seen, emitted)


def _of_agent(known: ServiceRuns, event: RunEvent) -> Iterator[RunEvent]:
    """Yield the events that follow from one of a run with a root."""
    change, run, previous = event
    if not known.has_agent and change is not _WITHDRAWN:
        known.has_agent = True
        for stray in known.open.values():
            yield RunEvent(_WITHDRAWN, stray)
        known.open = {}
    before = known.empty.pop(run.run_id, None)
    if before is not None and change in (_WITHDRAWN, _FINAL):
        yield RunEvent(change, before[1])
        return
    seen = known.seen(run)
    if before is not None:
        previous = before[1]
    yield event if seen is run and previous is event.previous else RunEvent(change, seen, previous)
    if change is not _WITHDRAWN and change is not _FINAL and is_empty(run):
        known.empty[run.run_id] = run, seen
