from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.sessions import (
    SIGNALS,
    agent_consistency,
    agent_reliability,
    bare_consistency,
    bare_reliability,
    consistency_band,
    reliability_band,
    weights_of,
)

TRACES = st.lists(
    st.dictionaries(st.sampled_from(SIGNALS), st.floats(0, 1)), min_size=1, max_size=30
)


def told(traces: list[dict[str, float]]) -> tuple[list[str], dict[str, dict[str, float]]]:
    signals = {f"t{at}": signals for at, signals in enumerate(traces)}
    return list(signals), signals


@given(traces=TRACES)
def test_a_session_is_as_good_as_its_worst_traces(traces: list[dict[str, float]]) -> None:
    score, _, metadata = agent_reliability(*told(traces))
    if "aggregation" not in metadata:
        assert score == 1.0
        return
    worst = metadata["aggregation"]["max_risk"]

    assert 1.0 - worst - 1e-4 <= score <= 1.0 - 0.1 * worst + 1e-4
    assert len(metadata["flagged_traces"]) <= metadata["traces_evaluated"] <= len(traces)


@given(traces=TRACES, coherence=st.floats(0, 3))
def test_bare_scores_are_those_that_are_explained(
    traces: list[dict[str, float]], coherence: float
) -> None:
    rows: list[Any] = [tuple([signals.get(name) for name in SIGNALS]) for signals in traces]
    weights = {"coherence": coherence}

    for full, bare in (
        (agent_reliability, bare_reliability),
        (agent_consistency, bare_consistency),
    ):
        found = full(*told(traces), weights)
        assert bare(rows, weights_of(weights)) == (
            (found.score, found.evaluated) if found.evaluated else (None, 0)
        )


@given(traces=TRACES, worse=st.floats(0, 1))
def test_a_worse_signal_never_helps(traces: list[dict[str, float]], worse: float) -> None:
    lowered = [{name: score * worse for name, score in signals.items()} for signals in traces]

    for metric in (agent_reliability, agent_consistency):
        assert metric(*told(lowered)).score <= metric(*told(traces)).score


@given(traces=TRACES)
def test_a_session_of_equal_traces_scores_as_one(traces: list[dict[str, float]]) -> None:
    first = traces[0]
    for metric in (agent_reliability, agent_consistency):
        assert metric(*told([first] * 7)).score == pytest.approx(
            metric(*told([first])).score, abs=1.01e-4
        )


def test_scores_can_be_changed_without_changing_others() -> None:
    agent_reliability([], {}).metadata["note"] = "mine"
    assert agent_reliability([], {}).metadata == {"note": "empty_session"}


@pytest.mark.parametrize(
    ("score", "band"),
    [
        (1.0, 4),
        (0.9, 4),
        (0.8999, 3),
        (0.7, 3),
        (0.695, 2),
        (0.5, 2),
        (0.3, 1),
        (0.2999, 0),
        (0.0, 0),
    ],
)
def test_bands_leave_no_gaps(score: float, band: int) -> None:
    words = [reliability_band(cut) for cut in (0.0, 0.3, 0.5, 0.7, 0.9)]
    others = [consistency_band(cut) for cut in (0.0, 0.3, 0.5, 0.7, 0.9)]

    assert (reliability_band(score), consistency_band(score)) == (words[band], others[band])
    assert len({*words, *others}) == 10
