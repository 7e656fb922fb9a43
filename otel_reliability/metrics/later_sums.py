"""The distances over all pairs of many different runs, at the price of one look at each path for a run that comes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence, Sized
from typing import Final, Generic, TypeVar

import numpy as np

from otel_reliability.metrics.apart import ONE_BITS, Column, Integers

K = TypeVar("K", bound=Sized)

HALF_BITS: Final = 26
HALF: Final = (1 << HALF_BITS) - 1
FITTING: Final = (1 << (63 - ONE_BITS)) - 1
"""So many distances together are less than 2^63."""
WRAP: Final = (1 << 64) - 1
ROOM: Final = 64
"""Places of runs that have left are given back when there are so many, and as many as there are runs."""


class LaterSums(Generic[K]):
    """The sum of the distances over all pairs of runs, by what each of them did (its code).

    For each code there is the sum of its distances to all that came since it is here; a run notes what that was when it came.
    So the run that has been here longest leaves at no cost, and any other costs one look at each code, like a run that comes.
    Runs that did the same are interchangeable, so nothing else of them is known. State: columns of 64-bit integers, four for
    each code, two for each run; sums that pass 2^63 wrap, and come back where they are taken from one another.
    """

    __slots__ = (
        "_arrivals", "_codes", "_column", "_first", "_free", "_later", "_lengths", "_noted", "_number", "_places",
        "_runs", "total",
    )  # fmt: skip

    def __init__(self, column: Column[K], there: Mapping[K, int]) -> None:
        self._column = column
        self._places: dict[K, int] = {}
        self._codes: list[K] = []
        self._lengths, self._runs, self._later = array("q"), array("q"), array("q")
        self._free: list[int] = []
        self._arrivals, self._noted = array("i"), array("q")
        self._first = 0
        self._number = 0
        self.total = 0
        """The sum over all pairs, in units of 2^-52."""
        for code, runs in there.items():
            self.add(code, runs)

    def __len__(self) -> int:
        """How many different things runs did."""
        return len(self._places)

    def __contains__(self, code: K) -> bool:
        """Whether a run did so."""
        return code in self._places

    def add(self, code: K, runs: int = 1) -> None:
        """So many runs come that did the same."""
        place = self._places.get(code)
        if place is None:
            place = self._place(code)
        shares = self._shares(code)
        self.total += runs * self._times_runs(shares)
        later = np.frombuffer(self._later, np.int64)
        later += shares if runs == 1 else shares * runs
        del later
        self._runs[place] += runs
        self._number += runs
        self._arrivals.extend([place] * runs)
        self._noted.extend([self._later[place]] * runs)

    def remove(self, code: K) -> None:
        """A run that did so leaves: the first to have come of those that did."""
        place = self._places[code]
        if self._arrivals[self._first] == place:
            self.total -= self._distance_of_first(code, place)
            self._first += 1
            self._give_back()
        else:
            self._take_out(code, place)
        self._number -= 1
        self._runs[place] -= 1
        if not self._runs[place]:
            del self._places[code]
            self._free.append(place)

    def count_all(self, codes: Sequence[K], times: Sequence[int]) -> None:
        """Of each of these so many runs come, or as many leave as it is below 0. Those leave first: less is compared then."""
        for code, number in zip(codes, times, strict=True):
            for _ in range(-number):
                self.remove(code)
        for code, number in zip(codes, times, strict=True):
            if number > 0:
                self.add(code, number)

    def counts(self) -> dict[K, int]:
        """How many runs did what."""
        return {code: self._runs[place] for code, place in self._places.items()}

    def distance(self, code: K) -> int:
        """The sum of the distances of a code to all runs, in units of 2^-52."""
        return self._times_runs(self._shares(code))

    def _place(self, code: K) -> int:
        """A place for a new code: one that is free, which has no runs, or a further one."""
        if self._free:
            place = self._places[code] = self._free.pop()
            self._codes[place], self._lengths[place] = code, len(code)
            return place
        place = self._places[code] = len(self._codes)
        self._codes.append(code)
        self._lengths.append(len(code))
        self._runs.append(0)
        self._later.append(0)
        return place

    def _shares(self, code: K) -> Integers:
        return self._column(code, self._codes, np.frombuffer(self._lengths, np.int64))

    def _times_runs(self, shares: Integers) -> int:
        """The sum of the distances, each as often as there are runs; in two halves where it might not fit."""
        runs = np.frombuffer(self._runs, np.int64)
        if self._number <= FITTING:
            return int(shares @ runs)
        return (int((shares >> HALF_BITS) @ runs) << HALF_BITS) + int((shares & HALF) @ runs)

    def _distance_of_first(self, code: K, place: int) -> int:
        """The distance of the run that has been here longest to all others."""
        if self._number > FITTING:
            return self.distance(code)
        return (self._later[place] - self._noted[self._first]) & WRAP

    def _take_out(self, code: K, place: int) -> None:
        """Subtract a run from the sums, and from what those that came before it still hold of it."""
        shares, first = self._shares(code), self._first
        self.total -= self._times_runs(shares)
        at = self._arrivals.index(place, first)
        noted = np.frombuffer(self._noted, np.int64)
        noted[first:at] += shares[np.frombuffer(self._arrivals, np.int32)[first:at]]
        del noted
        del self._arrivals[at], self._noted[at]

    def _give_back(self) -> None:
        first = self._first
        if first >= ROOM or first * 2 > len(self._arrivals):
            if first * 2 < len(self._arrivals) and first < len(self._arrivals) >> 3:
                return
            del self._arrivals[:first], self._noted[:first]
            self._first = 0
