"""The growth of bets by the compiled module, where it is installed (`otel-reliability-native`); otherwise, and for all that is
unusual, by `growth`, which tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from otel_reliability import native
from otel_reliability.change import growth as plain
from otel_reliability.change.martingale import KEPT, SHARED, STRONG, WEAK, Jumper
from otel_reliability.change.rank import WINDOW, Ranks

MODULE: Final = "otel_reliability_native_change"
Growth: TypeAlias = Callable[[Ranks, Jumper, float, bytes], float | None]


def load() -> Any:
    """The compiled module, None where it is not installed or does not fit."""
    return native.load(MODULE)


NATIVE: Final = load()
growth: Final[Growth] = (
    plain.growth if NATIVE is None else NATIVE.Growth(plain.growth, WINDOW, KEPT, SHARED, WEAK, STRONG)
)
"""The same as `growth.growth`."""
