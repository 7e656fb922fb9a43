"""Observations for the tests of change detection, by hand and at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from otel_reliability.change.signal_state import tie_breaker
from otel_reliability.model.observation import Observation

SECOND = 1_000_000_000
TOOLS = ("search", "read", "book", "cancel", "mail")


def observation(
    n: int, path: Sequence[str] | None = ("search", "book"), **numbers: Any
) -> Observation:
    """The n-th observation, one a second."""
    calls = None if path is None else len(path)
    plain = Observation(
        f"run-{n}",
        n * SECOND,
        n * SECOND,
        None if path is None else tuple(path),
        calls,
        0,
        300,
        2_000,
        0,
    )
    return replace(plain, **{"reply_tokens": 300, "replies": 3, **numbers})


def u_of(unit_id: str, signal: str, ordinal: int) -> float:
    """The tie breaker of an observation's signal, from the text that the definition names."""
    return tie_breaker(f"{ordinal}\0{signal}\0{unit_id}".encode("utf-8", "surrogatepass"))


def exchangeable(n: int, seed: int = 0, first: int = 1, longer: int = 0) -> list[Observation]:
    """Exchangeable observations with ties, heavy tails and absent numbers; `longer` adds tool calls
    to every path.
    """
    dice = random.Random(seed)
    return [_random_unit(number, dice, longer) for number in range(first, first + n)]


def _random_unit(n: int, dice: random.Random, longer: int) -> Observation:
    path = [dice.choice(TOOLS) for _ in range(dice.randrange(5) + longer)]
    return observation(
        n,
        path if dice.random() < 0.9 else None,
        failed_calls=dice.randrange(3),
        output_tokens=int(dice.paretovariate(1) * 100),
        largest_input=dice.choice((None, 1_000, 2_000)),
        failures=dice.choice((None, 0, 1)),
        replies=dice.randrange(4),
        task=dice.choice((None, "a", "b", "c")),
        errors=random.Random(f"{n} {longer}").choice((None, 0, 0, 1)),
    )
