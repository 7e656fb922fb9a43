"""What change detection adds: the same runs of 20 spans with it and without it."""

from __future__ import annotations

from typing import Final

from benchmarks.fresh import Fed, seconds
from benchmarks.measure import Row, ratios, row
from benchmarks.payloads import Traffic
from otel_reliability import conventions
from otel_reliability.config import ChangeSettings, Settings
from otel_reliability.conventions.reader import Reader
from otel_reliability.engine import Engine
from otel_reliability.model.span import AgentSpan, ToolFacts
from otel_reliability.service.memory import look_seldom

RUN: Final = 20
BATCH: Final = 25
"""Runs taken in at once."""
BATCHES: Final = 8
"""Batches of one measurement."""
WARM: Final = 700
"""Runs of each agent after which detectors watch, and keep as many values as they ever will."""
AGENTS: Final = 3


class Runs:
    """Batches of runs of 20 spans on habitual paths, the same for everybody who asks from the beginning."""

    def __init__(self, settings: Settings) -> None:
        self._traffic = Traffic(agents=AGENTS)
        self._read = Reader(settings, conventions.TABLE).read

    def batch(self) -> list[AgentSpan]:
        """The next one."""
        return [span for _ in range(BATCH) for span in self._run()]

    def _run(self) -> list[AgentSpan]:
        """A run without a session, cut or filled up to 20 spans: its last model and tool calls stand for the others."""
        *steps, root = [self._read(raw)._replace(session=None) for raw in self._traffic.run()]
        more = [_again(one, at) for at, one in enumerate(steps * 3)]
        return [*[*steps, *more][: RUN - 1], root]


def _again(span: AgentSpan, at: int) -> AgentSpan:
    """Another span like it: the call that it tells is another one."""
    facts = span.facts
    if isinstance(facts, ToolFacts):
        told = facts.calls[0]._replace(call_id=None, arguments=at.to_bytes(16))
        facts = ToolFacts((told,))
    start_ns = span.start_ns + at
    return span._replace(span_id=(at + 1).to_bytes(8), start_ns=start_ns, end_ns=start_ns + 1, facts=facts)


def taking(*, change: bool) -> Fed[list[AgentSpan]]:
    """Assembly and windows, with change detection or without."""
    settings, now = Settings(change=ChangeSettings(enabled=change)), 0.0
    engine, runs = Engine(settings, clock=lambda: now, wall=None), Runs(settings)

    def take(spans: list[AgentSpan]) -> None:
        nonlocal now
        engine.receive(spans)
        now += 3.0
        engine.tick()
        engine.take_settled()

    for _ in range(WARM * AGENTS // BATCH):
        take(runs.batch())
    return Fed(take, runs.batch)


def rows() -> list[Row]:
    """What it adds."""
    look_seldom()
    watched, unwatched = seconds(taking(change=True), taking(change=False), each=BATCHES)
    return [
        row(
            "assembly and windows with change detection, runs of 20 spans, stable paths",
            ratios(watched, unwatched),
            at_most=1.5,
            against="without",
        )
    ]
