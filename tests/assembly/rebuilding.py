"""Runs from a handful of spans, and an assembler on a clock."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from types import FrameType
from typing import Any

from msgspec.structs import replace

from otel_reliability.assembly.lifecycle import Assembler
from otel_reliability.config import AssemblySettings, LimitSettings, Settings
from otel_reliability.model.run import CloseReason, Run, RunChange, RunEvent
from otel_reliability.model.span import (
    AgentSpan,
    Evaluation,
    InvocationFacts,
    Kind,
    ModelFacts,
    Notes,
)
from otel_reliability.testing import FakeClock, agent_span

Told = AgentSpan | Evaluation
TraceFunction = Callable[[FrameType, str, Any], Any]
DEFAULTS = Settings()


def rebuilt(*told: Told, settings: Settings = DEFAULTS) -> list[Run]:
    """The runs of these spans, as at the end of a file, in the order of their starts, the outer
    before the inner.
    """
    assembler = Assembler(settings)
    for one in told:
        take(assembler, one, 0.0)
    events = assembler.close_all(CloseReason.END_OF_INPUT, 0.0)
    runs = [event.run for event in events if event.change is RunChange.FINAL]
    return sorted(runs, key=lambda run: (run.start_ns, -run.end_ns, run.run_id))


def run_of(*told: Told, settings: Settings = DEFAULTS) -> Run:
    """The one top-level run of these spans."""
    (run,) = [run for run in rebuilt(*told, settings=settings) if not run.nested]
    return run


@contextlib.contextmanager
def counted_lines() -> Generator[Counter[str]]:
    """Count the lines that the block executes, by file: its work, on every machine the same."""
    executed: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction:
        if event == "line":
            executed[frame.f_code.co_filename] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield executed
    finally:
        sys.settrace(before)


def names_of(*told: Told, settings: Settings = DEFAULTS) -> list[tuple[str, bool]]:
    """The agents of the runs of these spans, and whether each is nested."""
    return [(run.key.agent, run.nested) for run in rebuilt(*told, settings=settings)]


def accounts_of(*told: Told, settings: Settings = DEFAULTS) -> dict[tuple[str, str], int]:
    assembler = Assembler(settings)
    for one in told:
        take(assembler, one, 0.0)
    assembler.close_all(CloseReason.END_OF_INPUT, 0.0)
    return spans_in(assembler)


def spans_in(assembler: Assembler) -> dict[tuple[str, str], int]:
    """The accounts of spans."""
    return {key: number for key, number in assembler.accounts.spans.items() if number}


def take(assembler: Assembler, one: Told, now: float) -> None:
    """Hand over a span, or a judgement that comes apart."""
    if isinstance(one, Evaluation):
        assembler.evaluate((one,), now)
    else:
        assembler.add_all((one,), now)


def used(assembler: Assembler) -> dict[str, int]:
    return {limit.name: limit.used for limit in assembler.limits if limit.used is not None}


class Watched:
    """An assembler on a clock that is wound by hand, ticking once a second, as a live one does."""

    def __init__(self, settings: AssemblySettings | None = None, **limits: int) -> None:
        self.clock = FakeClock()
        self.assembler = Assembler(
            Settings(assembly=settings or AssemblySettings(), limits=LimitSettings(**limits))
        )
        self.events: list[RunEvent] = []

    def add(self, *told: Told) -> None:
        """Hand spans over now."""
        for one in told:
            take(self.assembler, one, self.clock())

    def wait(self, seconds: float) -> list[tuple[RunChange, Run]]:
        """Let time pass. What changed meanwhile."""
        self.events = []
        for step in _steps(seconds):
            self.clock.advance(step)
            self.events += self.assembler.tick(self.clock())
        return self.changes

    def end(self, reason: CloseReason = CloseReason.SHUTDOWN) -> list[tuple[RunChange, Run]]:
        """Close everything."""
        self.events = self.assembler.close_all(reason, self.clock())
        return self.changes

    @property
    def changes(self) -> list[tuple[RunChange, Run]]:
        """What changed last."""
        return [(event.change, event.run) for event in self.events]

    @property
    def accounts(self) -> dict[tuple[str, str], int]:
        """What became of the spans."""
        return spans_in(self.assembler)


def _steps(seconds: float) -> Iterable[float]:
    whole = int(seconds)
    yield from (1.0 for _ in range(whole))
    if seconds > whole:
        yield seconds - whole


# --- Spans with facts that `testing` has no words for ---------------------------------------------


def invocation(
    facts: InvocationFacts, number: int, parent: int | None = None, **place: Any
) -> AgentSpan:
    return agent_span(Kind.AGENT, facts, number, parent, **place)


def chain(
    number: int, parent: int | None = None, facts: InvocationFacts | None = None, **place: Any
) -> AgentSpan:
    return agent_span(Kind.CHAIN, facts or InvocationFacts(), number, parent, **place)


def asking(facts: ModelFacts, number: int, parent: int | None = None, **place: Any) -> AgentSpan:
    return agent_span(Kind.MODEL, facts, number, parent, **place)


def noted(span: AgentSpan, **notes: Any) -> AgentSpan:
    return replace(span, notes=Notes(**notes))
