"""The published pass^k of a benchmark, from its spans."""

from __future__ import annotations

from typing import Any

import pytest

from otel_reliability.config import Settings, WindowSettings
from otel_reliability.engine import Engine
from otel_reliability.metrics.passes.series import PassSeries
from otel_reliability.model.run import CloseReason
from otel_reliability.sources.otlp_json import read_file
from otel_reliability.windows.window import AgentWindow
from tests.oracles.reading import close, load
from tests.shared import shared

PUBLISHED = {1: 0.420, 2: 0.273, 3: 0.220, 4: 0.200}
DATASET = "gpt-4o_airline_4trials"


def window_of(file: str) -> AgentWindow:
    """The window over a whole recording of one agent."""
    engine = Engine(Settings(windows=(WindowSettings("all", last=100_000),)), clock=lambda: 0.0, wall=None)
    for batch in read_file(str(shared(f"corpora/taubench/{file}"))):
        engine.receive(batch.spans)
    engine.flush(CloseReason.END_OF_INPUT)
    [key] = engine.agents.keys()
    state = engine.agents.agent(key)
    assert state is not None
    return state.windows["all"]


def by_k(window: AgentWindow, name: str) -> dict[int, float | None]:
    """A series of k over a window."""
    metric = window.metric(name)
    assert isinstance(metric, PassSeries)
    return {k: reading.value for k, reading in metric.by_k().items()}


@pytest.mark.parametrize("form", ["", ".turns"])
def test_published_passes_come_out_of_spans(form: str) -> None:
    """Whether a run is a conversation, or a turn whose last tells the outcome: pass^k as published, pass@k as in the truth."""
    window = window_of(f"{DATASET}{form}.otlp.jsonl.gz")
    truth: dict[str, Any] = load("corpora/taubench/truth.json")["datasets"][DATASET]["summary"]
    hat, at = by_k(window, "pass_hat_k"), by_k(window, "pass_at_k")

    assert {k: round(value or 0, 3) for k, value in hat.items()} == PUBLISHED
    assert all(close(hat[int(k)], value) for k, value in truth["pass_hat_k"].items())
    assert all(close(at[int(k)], value) for k, value in truth["pass_at_k"].items())
    assert window.reading("pass_hat_k").runs == truth["runs"]
