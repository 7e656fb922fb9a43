"""The recordings, read from file to units by the product's own path."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

from otel_reliability.change.recording import Observations
from otel_reliability.engine import Engine
from otel_reliability.model.observation import Observation
from otel_reliability.model.run import CloseReason, Run
from otel_reliability.sources.otlp_json import read_file
from tests.change.simulate import Ints, Pool
from tests.change.streams import recorded
from tests.shared import shared

GPT_AIRLINE: Final = "tau2/gpt-4.1_airline"
GPT_TELECOM: Final = "tau2/gpt-4.1_telecom"
SFT_AIRLINE: Final = "tau2/gpt-4.1-sft_airline"
SFT_TELECOM: Final = "tau2/gpt-4.1-sft_telecom"
CLAUDE_AIRLINE: Final = "tau2/claude-sonnet-4-5_airline"

CORPORA: Final = (GPT_AIRLINE, GPT_TELECOM, SFT_AIRLINE, SFT_TELECOM, CLAUDE_AIRLINE)


@functools.cache
def recorded_runs(corpus: str) -> tuple[Run, ...]:
    engine = Engine(wall=None)
    for batch in read_file(shared(f"corpora/{corpus}.otlp.jsonl.gz")):
        engine.receive(batch.spans)
    engine.flush(CloseReason.END_OF_INPUT)
    return tuple(engine.take_final())


@functools.cache
def recorded_units(corpus: str) -> tuple[Observation, ...]:
    """The units of its only agent."""
    (units,) = Observations(recorded_runs(corpus)).values()
    return tuple(units)


def change(before: str, after: str) -> tuple[Pool, Ints, Ints]:
    """The units of two recordings as one pool, and the rows of either."""
    earlier, later = recorded_units(before), recorded_units(after)
    rows = np.arange(len(earlier) + len(later))
    return recorded([*earlier, *later]), rows[: len(earlier)], rows[len(earlier) :]
