"""To fetch objects changes nothing: neither them nor how often they are held, whatever they are."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from otel_reliability.assembly.bundle import Bundle
from otel_reliability.assembly.compiled import NATIVE
from otel_reliability.assembly.fetching import fetch
from otel_reliability.model.model_calls import ModelCalls
from otel_reliability.model.run import CloseReason
from otel_reliability.testing import agent, model, run, tool, trace_id


def test_nothing_is_changed() -> None:
    """Bundles whose slots are filled or not, runs, empty and long containers, plain values, and what holds itself."""
    bundle, whole = Bundle(trace_id(1), 0.0), Bundle(trace_id(2), 0.0)
    for span in (agent(1, trace=2), model(2, 1, trace=2), tool(3, 1, "search", trace=2)):
        whole.keep(span)
    whole.close(run(), agent(1, trace=2), 9.0)
    circle: list[Any] = []
    circle.append(circle)
    held: list[Any] = [
        bundle, whole, Bundle.__new__(Bundle), ModelCalls.__new__(ModelCalls), run(["search"]), {"a": run()}, circle, (), [],
        tuple(range(1_000, 2_000)), [None] * 1_000, None, 7, "text", CloseReason.ROOT,
    ]  # fmt: skip
    before = [sys.getrefcount(one) for one in held]
    for _ in range(3):
        fetch(held)

    assert [sys.getrefcount(one) for one in held] == before
    assert list(whole.spans()) == [model(2, 1, trace=2), tool(3, 1, "search", trace=2), agent(1, trace=2)]
    fetch([])


@pytest.mark.skipif(NATIVE is None, reason="the compiled module (native/) is not installed")
def test_classes_have_nothing_but_slots() -> None:
    """What else lies in an object might be no part of it."""

    class Loose:
        pass

    for kind in (Loose, tuple, int):
        with pytest.raises(TypeError, match="slots"):
            NATIVE.Fetcher(kind)
