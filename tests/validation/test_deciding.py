from __future__ import annotations

import pytest

from tests.validation.deciding import ALPHA, MAX_RUNS, TARGET, UNLIKE, simulate


@pytest.mark.parametrize("rates", [(0.5,), (0.8,), (0.88,), (0.9,), (0.95,), (0.99,), UNLIKE])
def test_wrong_decisions_stay_within_alpha(rates: tuple[float, ...]) -> None:
    rate = sum(rates) / len(rates)
    found = simulate(rates, 500)

    assert found.wrong(round(rate, 6)) <= ALPHA + 0.03  # three standard errors
    if abs(rate - TARGET) > 0.09:
        assert found.runs < MAX_RUNS / 2
