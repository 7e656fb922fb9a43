"""Faults of tools: a decorator that makes calls fail at random, only where an experiment asks for
it. It imports the standard library alone, so an agent may use it in production.

    from otel_reliability.experiments.faults import faulty

    @faulty
    def search(query: str) -> str: ...

Each call draws from a generator that is seeded by the attempt, so an attempt can be repeated.
"""

from __future__ import annotations

import functools
import inspect
import os
import random
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

VARIABLE: Final = "OTEL_RELIABILITY_FAULTS"
"""Environment variable by which an experiment asks for faults: rate, seed, kinds, and the file that
counts the calls.
"""
KINDS: Final = ("error", "timeout", "empty", "malformed", "slow")
DEFAULT_KINDS: Final = tuple(kind for kind in KINDS if kind != "slow")
"""Those that an experiment draws from unless it names some."""
SLOW_S: Final = 2.0
"""Seconds by which a slow call is late."""
MALFORMED: Final = '{"result": "trunca'
"""Result of a call that is malformed."""
CALL: Final = "."
FAULT: Final = "x"


class ToolFault(Exception):
    """Error: a tool failed because the experiment asked for it."""


class Faults(NamedTuple):
    """Request of an experiment: the share of calls that fail, a seed, the kinds of faults, and
    the file in which calls and faults are counted.
    """

    rate: float
    seed: str
    kinds: tuple[str, ...]
    counts: str

    def encoded(self) -> str:
        """Return the value of the variable."""
        return f"{self.rate:g};{self.seed};{','.join(self.kinds)};{self.counts}"

    @classmethod
    def of(cls, text: str) -> Faults:
        """Read the value of the variable."""
        rate, seed, kinds, counts = text.split(";", 3)
        return cls(float(rate), seed, tuple(kinds.split(",")), counts)


class Injector:
    """Draws a fault, or none, for each call of a process. A later process of the attempt draws
    other ones: an agent may start its MCP server again for each call.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        earlier = os.path.getsize(faults.counts) if os.path.exists(faults.counts) else 0  # noqa: PTH110, PTH202  no further import
        seed = f"{faults.seed}-{earlier}" if earlier else faults.seed
        self._random = random.Random(seed)  # noqa: S311  it repeats an experiment

    def draw(self) -> str | None:
        """Return the kind of fault of the next call, and count both."""
        faults = self._faults
        is_hit = self._random.random() < faults.rate
        kind = self._random.choice(faults.kinds)
        with open(faults.counts, "a", encoding="ascii") as file:  # noqa: PTH123  no further import
            file.write(CALL + FAULT * is_hit)
        return kind if is_hit else None


_injectors: dict[str, Injector] = {}


def draw() -> str | None:
    """Return the kind of fault of the next call; None outside of an experiment."""
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    injector = _injectors.get(text)
    if injector is None:
        injector = _injectors[text] = Injector(Faults.of(text))
    return injector.draw()


def faulty(tool: Callable[P, R]) -> Callable[P, R]:
    """Return the tool, which fails at random where an experiment asks for it, and is unchanged
    otherwise. Works for functions and coroutine functions.
    """
    if inspect.iscoroutinefunction(tool):

        @functools.wraps(tool)
        async def calling(*args: P.args, **kwargs: P.kwargs) -> Any:
            kind = draw()
            if kind == "slow":
                import asyncio  # noqa: PLC0415  most agents need no 30 ms more

                await asyncio.sleep(SLOW_S)
            elif kind is not None:
                return _failed(kind)
            return await tool(*args, **kwargs)

        return cast("Callable[P, R]", calling)

    @functools.wraps(tool)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        kind = draw()
        if kind == "slow":
            time.sleep(SLOW_S)
        elif kind is not None:
            return _failed(kind)
        return tool(*args, **kwargs)

    return call


def _failed(kind: str) -> Any:
    """Return the result of a call with a fault, or raise its error."""
    if kind == "error":
        raise ToolFault("the tool failed (injected by an experiment)")
    if kind == "timeout":
        raise TimeoutError("the tool did not answer in time (injected by an experiment)")
    return MALFORMED if kind == "malformed" else None
