from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from otel_reliability.metrics.passes.decay_curve import LONGEST, decay_curve, entry


@given(k=st.integers(1, 600), share=st.floats(0, 1))
def test_the_truncation_is_exact(k: int, share: float) -> None:
    """Whether a float or whole numbers decide, the entry is ⌊100 · c^k / k^k⌋."""
    passed = round(share * k)
    assert entry(passed, k) == 100 * passed**k // k**k


def test_a_curve_is_not_monotone() -> None:
    """It rises again after an early failure."""
    assert decay_curve([0] + [1] * 30)[:5] == (0, 25, 29, 31, 32)


def test_a_curve_has_a_longest() -> None:
    """Beyond it there are no more points."""
    assert len(decay_curve([1] * (LONGEST + 5))) == LONGEST
