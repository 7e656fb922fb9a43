"""Kinds of exchangeable streams: what the promise is measured on. The pools are drawn from with
replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from otel_reliability.change.signals import SIGNALS
from otel_reliability.model.observation import Observation, Steps
from otel_reliability.statistics.edits import coded, edit_shares
from tests.change.simulate import Floats, Pool

SIZE: Final = 5_000


def distances(paths: Sequence[Steps]) -> Floats:
    """The Levenshtein distances over the longer length of all pairs."""
    letters: dict[str, str] = {}
    codes = [coded(path, letters) for path in paths]
    distinct = {code: i for i, code in enumerate(dict.fromkeys(codes))}
    table = np.array([edit_shares(code, distinct) for code in distinct])
    at = np.array([distinct[code] for code in codes])
    return table[np.ix_(at, at)]


def recorded(observations: Sequence[Observation]) -> Pool:
    values = [
        [SIGNALS[signal].read(observation) for signal in SIGNALS] for observation in observations
    ]
    between = distances([observation.path or () for observation in observations])
    unknown = np.array([observation.path is None for observation in observations])
    between[unknown, :] = between[:, unknown] = np.nan
    return Pool(np.array(values, dtype=np.float64), between)


def _constants(dice: np.random.Generator) -> Floats:
    """Four signals that never change, and one."""
    values = np.tile([0.0, 1.0, 7.0, 300.0, 0.0], (SIZE, 1))
    values[:, 4] = dice.normal(size=SIZE)
    return values


def _absent_in_part(dice: np.random.Generator) -> Floats:
    values = dice.normal(size=(SIZE, 5))
    values[dice.random((SIZE, 5)) < 0.4] = np.nan
    return values


def _sessions(dice: np.random.Generator) -> Floats:
    """Sums over the turns of sessions, whose turns hang together."""
    turns = 1 + dice.poisson(3, SIZE)
    user = dice.normal(size=(SIZE, 5))
    return np.round(
        turns[:, None] * (5 + user) + np.sqrt(turns)[:, None] * dice.normal(size=(SIZE, 5))
    )


SYNTHETIC: Final[Mapping[str, Callable[[np.random.Generator], Floats]]] = {
    "ties": lambda dice: dice.integers(0, 3, (SIZE, 5)).astype(np.float64),
    "constants": _constants,
    "rare events": lambda dice: (dice.random((SIZE, 5)) < 0.01).astype(np.float64),
    "heavy tails": lambda dice: dice.standard_cauchy((SIZE, 5)),
    "dependent signals": lambda dice: np.repeat(dice.normal(size=(SIZE, 1)), 5, axis=1),
    "absent in part": _absent_in_part,
    "fifty signals": lambda dice: dice.normal(size=(SIZE, 50)),
    "sessions": _sessions,
}


def erring(*rates: float) -> Pool:
    """Agents that end in errors at these rates, each in as many rows: of the nine signals the calls
    differ from run to run, and the last is the error.
    """
    dice = np.random.default_rng(20)
    values = np.zeros((SIZE * len(rates), len(SIGNALS)))
    values[:, 1] = dice.integers(1, 6, len(values))
    values[:, -1] = np.concatenate([np.arange(SIZE) < round(rate * SIZE) for rate in rates])
    return Pool(values)


def synthetic(kind: str) -> Pool:
    return Pool(SYNTHETIC[kind](np.random.default_rng(20)))
