"""Windows: a run more in one of 100 runs beside recomputing it, and what reading costs in one of 1 000 runs."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, count
from typing import Final

from Levenshtein import distance

from benchmarks.measure import ROUNDS, Row, ratio, ratios, row
from otel_reliability.config import Settings, WindowSettings
from otel_reliability.metrics.stability import ROWS
from otel_reliability.model import row as model
from otel_reliability.model.run import ToolCall
from otel_reliability.testing import call, run
from otel_reliability.windows.paths import PathTable
from otel_reliability.windows.rows import row_of
from otel_reliability.windows.window import AgentWindow

TOOLS: Final = tuple(f"tool {number}" for number in range(8))
LONGEST: Final = 20
READINGS: Final = 100
NAMES: Final = tuple(spec.name for cls in ROWS for spec in (cls.spec, *getattr(cls, "companions", ())))


def runs(*, chaotic: bool, seed: int = 7) -> Iterator[model.Row]:
    """Rows of one agent, for ever: five habits of which one run in twenty departs, or hardly a path twice."""
    dice, paths = random.Random(seed), PathTable()

    def path(longest: int = LONGEST) -> list[str]:
        return [dice.choice(TOOLS) for _ in range(dice.randrange(3, longest + 1))]

    habits = [path() for _ in range(5)]
    for number in count():
        steps = path() if chaotic or dice.random() < 0.05 else dice.choice(habits)
        calls: tuple[ToolCall, ...] = tuple(call(name, float(at)) for at, name in enumerate(steps))
        told = run(steps, number, tool_calls=calls, token_pressure=dice.random())
        yield row_of(told, paths)


class Full:
    """A window that is full, and gets a run more whenever it is asked to."""

    def __init__(self, size: int, *, chaotic: bool) -> None:
        settings = Settings(windows=(WindowSettings(last=size),))
        self.window = AgentWindow(settings.windows[0], settings)
        self._rows = runs(chaotic=chaotic)
        self._stock: list[model.Row] = []
        for _ in range(size):
            self.window.insert(next(self._rows))

    def add(self) -> None:
        """A run comes, the oldest goes."""
        if not self._stock:
            self._stock = [next(self._rows) for _ in range(5_000)][::-1]
        self.window.insert(self._stock.pop())

    def read(self) -> float:
        """CPU seconds of reading all stability metrics, as it is after a run has come."""
        took = 0.0
        for _ in range(READINGS):
            self.add()
            began = time.perf_counter()
            for name in NAMES:
                self.window.reading(name)
            took += time.perf_counter() - began
        return took / READINGS


def recomputing(rows: Sequence[model.Row]) -> Callable[[], object]:
    """The naive twin: every stability metric of a window by its plain formula, from its rows."""
    paths = [one.path for one in rows if one.path is not None]

    def work() -> object:
        codes, sets = Counter(path.code for path in paths), Counter(path.tools for path in paths)
        similar = math.fsum(
            1 - distance(one.code, two.code) / max(len(one.code), len(two.code), 1)
            for one, two in combinations(paths, 2)
        )
        return (
            _entropy(codes),
            _entropy(sets),
            math.fsum(_variation([dict(path.counts).get(tool, 0) for path in paths]) for tool in TOOLS),
            similar,
            any(one.retries is not None and one.retries.longest_chain >= 3 for one in rows),
            sum(one.retries.repeats for one in rows if one.retries is not None),
            math.fsum(one.pressure for one in rows if one.pressure is not None),
        )

    return work


def _entropy(counts: Counter[object] | Counter[str] | Counter[tuple[str, ...]]) -> float:
    runs = counts.total()
    return -math.fsum(many / runs * math.log2(many / runs) for many in counts.values()) / math.log2(runs)


def _variation(calls: Sequence[int]) -> float:
    mean = sum(calls) / len(calls)
    return min(math.sqrt(sum((one - mean) ** 2 for one in calls) / len(calls)) / mean, 2) / 2 if mean else 0.0


def rows() -> list[Row]:
    """What windows cost."""
    found: list[Row] = []
    for kind, chaotic in (("stable", False), ("chaotic", True)):
        small, large = Full(100, chaotic=chaotic), Full(1_000, chaotic=chaotic)
        times = [(large.read(), small.read()) for _ in range(ROUNDS)]
        slow, fast = zip(*times, strict=True)
        name = f"reading all stability metrics, window 1 000, {kind} paths"
        found += [
            row(name, ratios(slow, fast), at_most=1.5, against="window 100"),
            row("the same in a window of 100", fast, unit="µs", scale=1e6, against=f"{kind} paths"),
        ]
        limit = 1 / 30 if chaotic else None
        adding = ratio(
            f"adding a run at window 100, {kind} paths",
            small.add,
            recomputing(small.window.rows()),
            at_most=limit,
            against="recomputing the window",
        )
        found.append(adding)
    return found
