"""A service that runs for ever without state: each round has new agents and sessions, and leaves
nothing behind.
"""

from __future__ import annotations

import gc
import tracemalloc
from typing import Final

import msgspec

from otel_reliability.config import LimitSettings, Settings
from otel_reliability.engine import Engine
from otel_reliability.model.span import Session
from otel_reliability.service.decoded import Decoded
from otel_reliability.service.state import State
from otel_reliability.telemetry.exposition import Registry
from otel_reliability.telemetry.series_recording import SeriesRecording
from otel_reliability.testing import agent, tool
from otel_reliability.ui.live import Histories

AGENTS = 5
TRACES = 60
ROUNDS = 4
MAX_GROWTH: Final = 12_000
"""Bytes that so many rounds may add: far less than the key of each of their sessions would take."""


def test_memory_stays_the_same_when_as_much_is_forgotten_as_arrives() -> None:
    now = 0.0
    limits = LimitSettings(agents=3 * AGENTS, agent_idle=30.0, sessions=40, closed_ids=400)
    settings = Settings.load(
        {"assembly": {"linger": 1.0, "reopen": 1.0}, "sessions": {"idle": 5.0}}
    )
    engine = Engine(
        msgspec.structs.replace(settings, limits=limits),
        clock=lambda: now,
        wall=lambda: 0,
        places_return=True,
    )
    state = State(engine, SeriesRecording(engine, Registry(lambda: 0)), Histories(engine))

    def traced_after(rounds: int) -> int:
        nonlocal now
        for _ in range(rounds):
            for number in range(1, TRACES + 1):
                trace = int(now) * TRACES + number
                spans = (
                    tool(2, 1, "search", trace=trace),
                    agent(
                        1,
                        called=f"agent {now} {number % AGENTS}",
                        trace=trace,
                        session=Session(0, f"session {trace}"),
                    ),
                )
                state.apply(Decoded(spans))
            for _ in range(60):
                now += 1.0
                state.advance()
                state.recording.record()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        traced_after(ROUNDS)
        before = traced_after(ROUNDS)
        growth = traced_after(ROUNDS) - before
    finally:
        tracemalloc.stop()
    assert growth < MAX_GROWTH
    assert engine.sessions.accounts["sessions", "forgotten"] >= ROUNDS * TRACES
    assert engine.agents.accounts["expired", "idle"] > ROUNDS * AGENTS
