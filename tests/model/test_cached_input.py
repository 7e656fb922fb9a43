from __future__ import annotations

from msgspec.structs import replace

from otel_reliability.model.cached_input import CachedInput, cached_input
from otel_reliability.model.run import ModelCall
from otel_reliability.testing import run


def model_call(given: int | None, cached: int | None) -> ModelCall:
    return ModelCall("m", given, 10, False, "agent", 0, 1, cached_tokens=cached)


def test_cached_tokens_are_those_of_calls_that_report_them() -> None:
    calls = (
        model_call(1_000, 900),
        model_call(500, None),
        model_call(None, 40),
        model_call(200, 300),
    )

    assert cached_input(replace(run([]), model_calls=calls)) == CachedInput(1_100, 1_200)
    assert cached_input(run([])) == CachedInput(0, 0)
