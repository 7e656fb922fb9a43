"""Open runs: what each has used so far, against configured bounds and against the finished runs of
its agent's window.

Traces that have grown are assembled as they are, the heaviest first, within a budget of processor
time. Those whose root has arrived are not, unless they are part of a conversation: nothing in them
goes on, and they are assembled when they close. All that is emitted of an open run is that it
exceeds a bound.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from otel_reliability.assembly.buffers import TraceBuffer
from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import WatchSettings
from otel_reliability.model.cpu_budget import CpuBudget
from otel_reliability.model.limit import Limit
from otel_reliability.model.row import Row
from otel_reliability.model.run import AgentKey, Run, ServiceKey
from otel_reliability.model.span import is_conversation
from otel_reliability.windows.agents import OTHER_AGENT, AgentRegistry
from otel_reliability.windows.rows import PathTable, row_of

INTERVAL_S: Final = 1.0
"""Seconds between two checks of a trace."""
CPU_SHARE: Final = 0.05
"""Share of one processor that checks may use in the long run."""
BURST_S: Final = 0.1
"""Seconds of processor time that a check may use after a pause."""
MIN_GROWTH: Final = 0.01
"""Growth of a trace since its last check from which it is checked again: a long one costs more than
a short one.
"""

MIN_RUNS: Final = 50
"""Runs of a window from which its maximum is a bound."""
MAX_RUNS: Final = 1_000
"""Runs of a window whose maximum is read, the newest."""
MAX_AGENTS: Final = 50
"""Agents of a service whose windows bound a run of an unknown agent, the first to be seen."""
BOUNDS_AGE_S: Final = 10.0
"""Seconds for which bounds are kept."""
MAX_REMEMBERED: Final = 10_000
"""Maximum runs that are known to have exceeded a bound, and excesses that wait to be emitted."""

Usage: TypeAlias = Mapping[str, float]

KINDS: Final[Mapping[str, tuple[float, str]]] = {
    "tokens": (20_000, "tokens"),
    "cost": (0.1, "USD of cost"),
    "calls": (20, "tool calls"),
    "duration": (60, "seconds of duration"),
    "failing_streak": (5, "retries of one failing call in a row"),
    "repeats": (10, "repeated calls"),
}
"""Kinds of usage: the value below which a run exceeds no window, and its unit."""


class Excess(NamedTuple):
    """An open run exceeded a bound for the first time.

    `of` names the bound: a `setting`, or the `window` of its agent; of its `service` while nothing
    names the agent. The counter of `agent` includes it.
    """

    run: Run
    agent: AgentKey
    kind: str
    value: float
    bound: float
    of: str


class _Bounds(NamedTuple):
    agent: AgentKey
    of: str
    values: Usage


class _OpenRun(NamedTuple):
    """An open run as it was when it was checked last: the share of each bound that
    it has reached.
    """

    run_id: str
    agent: AgentKey
    shares: Usage


class _Window(NamedTuple):
    """The runs of an agent that were read, and the greatest value of each kind."""

    runs: int
    greatest: Usage


class Watch:
    """The open runs of one engine. `check` is called within its turn."""

    def __init__(
        self, settings: WatchSettings, assembler: Assembler, agents: AgentRegistry
    ) -> None:
        self._settings = settings
        self._assembler = assembler
        self._agents = agents
        self._configured = {
            kind: value for kind in KINDS if (value := getattr(settings, kind)) is not None
        }
        self._windows: dict[AgentKey, _Window] = {}
        self._services: dict[ServiceKey, list[AgentKey]] = {}
        self._read_at = float("-inf")
        self._raised: OrderedDict[str, set[str]] = OrderedDict()
        self.excesses: deque[Excess] = deque(maxlen=MAX_REMEMBERED)
        """The excesses that wait to be emitted."""
        self._lost = self._shortened = 0
        self._traces: dict[TraceBuffer, tuple[int, list[_OpenRun]]] = {}
        """The agent spans of each growing trace when it was checked last, and its open runs."""
        self._by_agent: dict[AgentKey, list[_OpenRun]] | None = None
        """These open runs by agent, made when they are first asked for after a check."""
        self._budget = CpuBudget(CPU_SHARE, BURST_S)
        self._checked = float("-inf")

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits: excesses that wait (a hit is one that was lost), and processor time per
        second of a check (a hit is a check that put off traces).
        """
        return (
            Limit("watch_excesses", len(self.excesses), MAX_REMEMBERED, self._lost),
            Limit("watch_milliseconds", None, round(CPU_SHARE * 1_000), self._shortened),
        )

    def check(self, now: float, spent: Callable[[], float] = time.thread_time) -> None:
        """Check the traces that have grown, at most once a second. `spent`: processor time in
        seconds.
        """
        if now - self._checked < INTERVAL_S:
            return
        self._budget.refill(now)
        self._checked = now
        began = spent()
        if now - self._read_at >= BOUNDS_AGE_S:
            self._windows = {}
            self._services = {}
            self._read_at = now
        growing = self._assembler.growing
        self._traces = {
            buffer: known for buffer, known in self._traces.items() if buffer in growing
        }
        grown = filter(self._has_grown, growing)
        for buffer in sorted(grown, key=lambda buffer: -buffer.agent_spans):
            if spent() - began >= self._budget.left:
                self._shortened += 1
                break
            runs = self._assembler.open_runs_of(buffer) if _may_go_on(buffer) else ()
            self._traces[buffer] = buffer.agent_spans, [self._compared(run) for run in runs]
        self._by_agent = None
        self._budget.left -= spent() - began

    def most_extreme(self, key: AgentKey) -> Usage:
        """Return by kind the largest share of its bound that an open run of an
        agent has reached.
        """
        return _greatest(run.shares for run in self._open_runs(key))

    def exceeding(self, key: AgentKey) -> list[tuple[str, Usage]]:
        """Return the open runs of an agent that exceed a bound: id, and share of the
        bound by kind.
        """
        own = self._open_runs(key)
        return [
            (run.run_id, run.shares) for run in own if max(run.shares.values(), default=0.0) > 1
        ]

    def _open_runs(self, key: AgentKey) -> Sequence[_OpenRun]:
        if self._by_agent is None:
            self._by_agent = {}
            for _, runs in self._traces.values():
                for run in runs:
                    self._by_agent.setdefault(run.agent, []).append(run)
        return self._by_agent.get(key, ())

    def _has_grown(self, buffer: TraceBuffer) -> bool:
        checked, _ = self._traces.get(buffer, (0, []))
        return buffer.agent_spans > checked * (1 + MIN_GROWTH)

    def _compared(self, run: Run) -> _OpenRun:
        usage = usage_of(row_of(run, PathTable()))
        window = self._bounds_of(run.key)
        shares: dict[str, float] = {}
        for kind, value in usage.items():
            given = ((window.values, window.of), (self._configured, "setting"))
            bounds = [(values[kind], of) for values, of in given if kind in values]
            if not bounds:
                continue
            bound, of = min(bounds)
            shares[kind] = value / bound
            if value > bound and kind not in self._raised.get(run.run_id, ()):
                self._raised.setdefault(run.run_id, set()).add(kind)
                self._lost += len(self.excesses) == MAX_REMEMBERED
                self.excesses.append(Excess(run, window.agent, kind, value, bound, of))
        while len(self._raised) > MAX_REMEMBERED:
            self._raised.popitem(last=False)
        return _OpenRun(run.run_id, window.agent, shares)

    # --- Bounds -----------------------------------------------------------------------------------

    def _bounds_of(self, key: AgentKey) -> _Bounds:
        """Return the bounds of an agent; of its service, while it is unknown: the root of a run
        arrives last in OTLP.
        """
        if self._agents.seen(key) is not None:
            return _Bounds(key, "window", self._of_windows([key]))
        if not self._services:
            for one in self._agents.keys():  # noqa: SIM118  not a mapping
                self._services.setdefault(one.service, []).append(one)
        same = self._services.get(key.service, [])
        return _Bounds(
            same[0] if len(same) == 1 else OTHER_AGENT,
            "service",
            self._of_windows(same[:MAX_AGENTS]),
        )

    def _of_windows(self, keys: Sequence[AgentKey]) -> dict[str, float]:
        """Return the bound of each kind over the windows of these agents: a multiple of the
        greatest value of a run.
        """
        windows = [self._window_of(key) for key in keys]
        factor = self._settings.factor
        if not factor or sum(window.runs for window in windows) < MIN_RUNS:
            return {}
        greatest = _greatest(window.greatest for window in windows)
        return {kind: max(factor * value, KINDS[kind][0]) for kind, value in greatest.items()}

    def _window_of(self, key: AgentKey) -> _Window:
        found = self._windows.get(key)
        if found is None:
            state = self._agents.loaded(key)
            rows = [] if state is None else state.first_window.plain_rows()[-MAX_RUNS:]
            found = self._windows[key] = _Window(len(rows), _greatest(map(usage_of, rows)))
        return found


def _may_go_on(buffer: TraceBuffer) -> bool:
    """Return whether a run of a trace may go on: its root arrives last. A conversation goes on with
    the next prompt.
    """
    return any(map(is_conversation, buffer.traces)) or all(
        span.parent_id is not None for span in buffer.spans
    )


def usage_of(row: Row) -> dict[str, float]:
    """Return what a run has used, by kind; kinds without data are left out."""
    retries = row.retries
    found = {
        "tokens": row.tokens,
        "cost": row.cost,
        "calls": row.tool_calls,
        "duration": (row.end_ns - row.start_ns) / 1e9,
        "failing_streak": None if retries is None else retries.longest_chain,
        "repeats": None if retries is None else retries.repeats,
    }
    return {kind: float(value) for kind, value in found.items() if value is not None}


def _greatest(usages: Iterable[Usage]) -> dict[str, float]:
    found: dict[str, float] = {}
    for usage in usages:
        for kind, value in usage.items():
            found[kind] = max(value, found.get(kind, 0.0))
    return found


def sentence_of(excess: Excess) -> str:
    """Return the sentence of an excess."""
    unit = KINDS[excess.kind][1]
    of = {"setting": "the configured bound", "window": "the bound by its agent's window"}
    bound = of.get(excess.of, "the bound by the windows of its service")
    return f"an open run has {excess.value:,.6g} {unit}; {bound} is {excess.bound:,.6g}"
