"""The session metrics' reference code: score, reason and every key of the metadata, exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from otel_reliability.metrics.sessions import SessionScore, agent_consistency, agent_reliability
from tests.oracles.reading import each

CASES = each("oracles/seed2.json", "cases")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("metric", [agent_reliability, agent_consistency])
def test_sessions_score_as_the_reference(
    case: dict[str, Any], metric: Callable[..., SessionScore]
) -> None:
    expected = case["expected"][metric.__name__]

    traces = [trace["trace_id"] for trace in case["traces"]]
    signals = {
        trace["trace_id"]: trace["signals"]
        for trace in case["traces"]
        if trace["signals"] is not None
    }
    found = metric(traces, signals, case["signal_weights"])

    assert expected["score"] == found.score
    assert expected["reason"] == found.reason
    assert expected["metadata"] == found.metadata
