"""Entropy that does not grow with the window."""

from __future__ import annotations

import numpy as np
import pytest

from otel_reliability.config import MetricSettings, Settings
from otel_reliability.metrics.examples import rows_of
from otel_reliability.metrics.miller_madow import miller_madow, path_bits, tool_bits
from otel_reliability.metrics.stability.path_entropy import PathEntropy


def plain(counts: list[int]) -> float:
    """Entropy in bits as it is."""
    shares = np.array(counts) / sum(counts)
    return float(-(shares * np.log2(shares)).sum())


def test_it_does_not_grow_with_the_window() -> None:
    """From 20 runs to 500 plain entropy grows by more than .2 bits, the corrected one by less than half of that."""
    dice, shares = np.random.default_rng(3), [0.3, 0.2, *[0.05] * 10]

    def means(n: int) -> tuple[float, float]:
        draws = [[int(c) for c in dice.multinomial(n, shares) if c] for _ in range(400)]
        return float(np.mean([plain(counts) for counts in draws])), float(np.mean([miller_madow(c) for c in draws]))

    (few, few_corrected), (many, many_corrected) = means(20), means(500)
    assert many - few > 0.2
    assert abs(many_corrected - few_corrected) < (many - few) / 2


def test_it_stands_beside_path_entropy() -> None:
    """Over the same groups with the same weights: with one path a task there is no entropy and no correction."""
    rows = [*rows_of("a", "a", task="x"), *rows_of("b", "c", "b", task="y"), *rows_of("d", task="z")]
    metric = PathEntropy()
    for row in rows:
        metric.add(row)
    bits = metric.beside()[0].value
    assert bits == pytest.approx(3 / 5 * plain([2, 1]))
    assert path_bits(rows) == pytest.approx(3 / 5 * miller_madow([2, 1]))


def test_what_counts_is_what_counts_there() -> None:
    """Perturbed runs and unobservable tools are left out; without groups all runs are one."""
    rows = [*rows_of("a b", "b a", task="x"), *rows_of("c", None, task="y"), *rows_of("c", condition="fault")]
    together = Settings(metrics=MetricSettings(group_by="none"))
    assert path_bits(rows) == pytest.approx(miller_madow([1, 1]))
    assert tool_bits(rows) == 0
    assert path_bits(rows, together) == pytest.approx(miller_madow([1, 1, 1]))
    assert path_bits(rows_of("a")) is None
