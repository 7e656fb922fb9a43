"""The detector over many streams at once, in numpy: what the promise and the power of change
detection are measured with.

`Streams` mirrors `change.detector` step by step (a test holds them equal), but a step takes the
next observation of hundreds of streams together. Used by the tests in short form and by `make
validate` at length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

REFERENCE = 40
WARM_UP = 20
WINDOW = 500
NEAREST = 5
EDGES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
START = np.array([0.14] * 5 + [0.06] * len(EDGES))


def bets(p: Floats) -> Floats:
    """What each of the bets pays on ranks."""
    linear = 1.6 * (p - 0.5)
    low = 0.5 / np.sqrt(np.maximum(p, 1e-4))
    high = 0.5 / np.sqrt(np.maximum(1 - p, 1e-4))
    steps = [np.where(p < edge, 0.5 / edge, 0.5 / (1 - edge)) for edge in EDGES]
    return np.stack([1 - linear, low, np.ones_like(p), high, 1 + linear, *steps], axis=-1)


def count(flags: Flags) -> Ints:
    """How many of the last axis are true, faster than `np.count_nonzero` counts along an axis."""
    return flags.view(np.uint8).sum(axis=2, dtype=np.uint16).astype(np.int64)


class Pool(NamedTuple):
    """Recorded observations to draw from: the values of their signals (NaN: absent) and their path
    distances to one another.
    """

    values: Floats
    distances: Floats | None = None


Draw: TypeAlias = Callable[[np.random.Generator, int, Ints], Ints]
"""The observations of this number (from 1) of these streams, as rows of the pool."""


class Streams:
    """n streams of observations, each with a detector of its own. Signal 0 is the path where the
    pool has distances.
    """

    def __init__(self, pool: Pool, n: int) -> None:
        self.pool = pool
        signals = pool.values.shape[1]
        self.kept = np.full((n, signals, WINDOW), np.nan, dtype=np.float32)
        self.seen = np.zeros((n, signals), dtype=np.int64)
        self.weights = np.tile(START, (n, signals, 1))
        self.evidence = np.zeros((n, signals))
        self.reference: list[Ints] = []
        self.monitored = 0

    def step(self, observations: Ints, u: Floats) -> Floats:
        """The next observation of every stream. Returns the mean evidence of each."""
        if len(self.reference) < REFERENCE:
            self.reference.append(observations)
            values = self.pool.values[observations].astype(np.float32)
            if self.pool.distances is not None:
                values[:, 0] = np.nan
        else:
            self.monitored += 1
            values = self._values(observations)
        self._bet(*self._rank(values, u))
        return self.evidence.mean(axis=1)

    def keep(self, going: Flags) -> None:
        """Go on with these streams only."""
        if going.all():
            return
        for name in ("kept", "seen", "weights", "evidence"):
            setattr(self, name, getattr(self, name)[going])
        self.reference = [observations[going] for observations in self.reference]

    def _values(self, observations: Ints) -> NDArray[np.float32]:
        values = self.pool.values[observations]
        if self.pool.distances is not None:
            near = self.pool.distances[observations[:, None], np.stack(self.reference, axis=1)]
            near = np.where(np.isnan(near), np.inf, near)
            path = np.sort(near, axis=1)[:, :NEAREST].sum(axis=1) / NEAREST
            values[:, 0] = np.where(np.isfinite(path), path, np.nan)
        return values.astype(np.float32)

    def _rank(self, values: NDArray[np.float32], u: Floats) -> tuple[Floats, Flags, Flags]:
        """The ranks, which values are there, and which of them are equal to all before them."""
        there = ~np.isnan(values)
        n = np.minimum(self.seen, WINDOW)
        kept = self.kept[:, :, : n.max()]
        greater = count(kept > values[:, :, None])
        equal = count(kept == values[:, :, None])
        rows, signals = np.nonzero(there)
        self.kept[rows, signals, self.seen[rows, signals] % WINDOW] = values[rows, signals]
        self.seen += there
        return (greater + u * (equal + 1)) / (n + 1), there, there & (equal == n)

    def _bet(self, p: Floats, there: Flags, alike: Flags) -> None:
        jumped = 0.98 * self.weights + 0.02 * START
        grown = jumped * bets(p)
        growth = grown.sum(axis=2)
        self.weights = np.where(there[:, :, None], grown / growth[:, :, None], self.weights)
        self.weights[alike] = START
        if self.monitored > WARM_UP:
            self.evidence = np.where(there, (self.evidence + 1) * growth, self.evidence)
        self.evidence[alike] = 0


def units_to_alarm(
    pool: Pool, c: float, streams: int, *, seed: int, draw: Draw | None = None, most: int = 10**9
) -> Ints:
    """How many observations each of so many streams takes to its first alarm, blind ones included,
    in the order of the alarms.

    Every stream is followed to its end (or to `most` observations), so that long ones are not cut
    off.
    """
    rng = np.random.default_rng(seed)
    running = Streams(pool, streams)
    names = np.arange(streams)
    signals = pool.values.shape[1]
    drawn = at_random(len(pool.values)) if draw is None else draw
    lengths: list[int] = []
    for observation in itertools.count(1):
        alarmed = (
            running.step(drawn(rng, observation, names), rng.random((len(names), signals))) >= c
        )
        lengths.extend([observation] * int(alarmed.sum()))
        running.keep(~alarmed)
        names = names[~alarmed]
        if not len(names) or observation == most:
            return np.array(lengths + [most] * len(names))
    raise AssertionError("the count ends")


def at_random(rows: int) -> Draw:
    """Any observation of the pool, each time: the same mix in random order."""
    return lambda rng, _, names: rng.integers(rows, size=len(names))


def in_blocks(groups: Sequence[Ints], length: int) -> Draw:
    """Observations of one task for so long, then of another: a benchmark that repeats each task
    before the next.
    """

    def draw(rng: np.random.Generator, observation: int, names: Ints) -> Ints:
        at: list[int] = (
            ((observation - 1) // length * 7919 + names * 104_729) % len(groups)
        ).tolist()
        return np.array([int(rng.choice(groups[one])) for one in at])

    return draw


def swinging(groups: Sequence[Ints], period: int) -> Draw:
    """A mix that swings between two halves of the work, as day and night do."""

    def draw(rng: np.random.Generator, observation: int, names: Ints) -> Ints:
        second = rng.random(len(names)) < 0.5 + 0.5 * np.sin(2 * np.pi * observation / period)
        return np.where(
            second, rng.choice(groups[0], len(names)), rng.choice(groups[1], len(names))
        )

    return draw


def delays(
    pool: Pool, before: Ints, after: Ints, *, c: float, streams: int, seed: int, at: int = 200
) -> Floats:
    """`at` observations drawn from `before`, then 100 from `after`: per stream the number of them
    after the change at which it is noticed, infinite where it is not. Streams with an alarm before
    the change are left out.
    """
    rng = np.random.default_rng(seed)
    running = Streams(pool, streams)
    signals = pool.values.shape[1]
    found: list[float] = []
    for observation in range(1, at + 101):
        n = len(running.evidence)
        if not n:
            break
        observations = rng.choice(before if observation <= at else after, size=n)
        alarmed = running.step(observations, rng.random((n, signals))) >= c
        if observation > at:
            found.extend([observation - at] * int(alarmed.sum()))
        running.keep(~alarmed)
    return np.array(found + [np.inf] * len(running.evidence))


def lower_bound(lengths: Ints) -> float:
    """The lower end of the one-sided 99 % interval of the mean."""
    return float(lengths.mean() - 2.326 * lengths.std(ddof=1) / np.sqrt(len(lengths)))
