"""The recordings, read from file to observations by the product's own path."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

from otel_reliability.change.recording import Observations
from otel_reliability.model.observation import Observation
from tests.change.simulate import Ints, Pool
from tests.change.streams import recorded
from tests.corpora.recordings import rebuilt, recording

GPT_AIRLINE: Final = "tau2/gpt-4.1_airline"
GPT_TELECOM: Final = "tau2/gpt-4.1_telecom"
SFT_AIRLINE: Final = "tau2/gpt-4.1-sft_airline"
SFT_TELECOM: Final = "tau2/gpt-4.1-sft_telecom"
CLAUDE_AIRLINE: Final = "tau2/claude-sonnet-4-5_airline"

CORPORA: Final = (GPT_AIRLINE, GPT_TELECOM, SFT_AIRLINE, SFT_TELECOM, CLAUDE_AIRLINE)


@functools.cache
def recorded_observations(corpus: str) -> tuple[Observation, ...]:
    (observations,) = Observations(
        rebuilt(recording(f"{corpus}.otlp.jsonl.gz").spans).runs
    ).values()
    return tuple(observations)


def change(before: str, after: str) -> tuple[Pool, Ints, Ints]:
    """The observations of two recordings as one pool, and the rows of either."""
    earlier = recorded_observations(before)
    later = recorded_observations(after)
    rows = np.arange(len(earlier) + len(later))
    return recorded([*earlier, *later]), rows[: len(earlier)], rows[len(earlier) :]
