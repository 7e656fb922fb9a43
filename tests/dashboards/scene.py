"""A Prometheus that holds what scrapes of a service at work would have given: two environments, a
replica, and an outage with a restart.

The service's clock is wound, so an hour takes seconds. Its scrapes become Prometheus' own blocks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.dashboards.stage import JOB, SETTINGS, Shop, clock_at, from_scrapes, stamped
from tests.real.prometheus.handle import Prometheus, Prometheuses, Promtool
from tests.service.running import Running, serving

SCRAPE_S: Final = 30.0
MAIN: Final = "reliability-0:9464"
REPLICA: Final = "reliability-1:9464"
ROUNDS_BEFORE: Final = 36
ROUNDS_AFTER: Final = 36
LARGE_SCRAPES: Final = 12
OUTAGE_S: Final = 600.0
REPLICA_EVERY: Final = 4
"""Rounds from one that the replica gets to the next."""


class Scene(NamedTuple):
    """The server, the time at which it is asked, and the time of the outage."""

    server: Prometheus
    now: float
    began: float
    down: float
    """A time within the outage at which no sample is fresh any more."""


class _Stage:
    """Two instances of the service, scraped side by side."""

    def __init__(self, main: Running, replica: Running) -> None:
        self._main = main
        self._replica = replica
        self._shops = [
            Shop(main, seed=7, environment="production"),
            Shop(main, seed=8, environment="staging"),
        ]
        self._copy = Shop(replica, seed=9, environment="production")

    def play(self, rounds: int) -> Iterator[list[str]]:
        """Yield a scrape of both at a time."""
        for number in range(rounds):
            for shop in self._shops:
                shop.round(0.0)
            if number % REPLICA_EVERY == 0:
                self._copy.round(0.0)
            for running in (self._main, self._replica):
                running.clock.advance(SCRAPE_S)
                running.writer_came_round()
            yield from self._seen()

    def _seen(self) -> Iterator[list[str]]:
        yield list(stamped(self._main, {"job": JOB, "instance": MAIN}))
        yield list(stamped(self._replica, {"job": JOB, "instance": REPLICA}))


@contextmanager
def scene(prometheus: Prometheuses, promtool: Promtool, folder: Path) -> Generator[Scene]:
    """Three quarters of an hour that end now: work, an outage of ten minutes, a restart without state, work."""
    now = time.time_ns() / 1e9 - 60
    began = now - (ROUNDS_BEFORE + ROUNDS_AFTER) * SCRAPE_S - OUTAGE_S
    scrapes: list[list[str]] = []
    scrapes += _played(began, ROUNDS_BEFORE)
    back = began + ROUNDS_BEFORE * SCRAPE_S + OUTAGE_S
    scrapes += _played(back, ROUNDS_AFTER)
    server = from_scrapes(prometheus, promtool, folder, scrapes)
    yield Scene(server, now, began, back - 30)


def _played(begin: float, rounds: int) -> list[list[str]]:
    with ExitStack() as stack:
        main = stack.enter_context(serving(SETTINGS, clock=clock_at(begin)))
        replica = stack.enter_context(serving(SETTINGS, clock=clock_at(begin)))
        return list(_Stage(main, replica).play(rounds))


@contextmanager
def large(prometheus: Prometheuses, promtool: Promtool, folder: Path) -> Generator[Scene]:
    """Some minutes of two hundred agents: each of the fleet stands for many."""
    now = time.time_ns() / 1e9 - 60
    began = now - (ROUNDS_BEFORE * SCRAPE_S)
    scrapes = _played(began, ROUNDS_BEFORE)[-LARGE_SCRAPES:]
    server = from_scrapes(prometheus, promtool, folder, [list(many(one)) for one in scrapes])
    yield Scene(server, now, now - LARGE_SCRAPES / 2 * SCRAPE_S, now)


_AGENT: Final = re.compile(r'gen_ai_agent_name="(\w+)"')
COPIES: Final = 20


def many(scrape: Iterable[str]) -> Iterator[str]:
    """A scrape of many times as many agents."""
    for line in scrape:
        found = _AGENT.search(line)
        if found is None:
            yield line
            continue
        for number in range(COPIES):
            yield line.replace(found[0], f'gen_ai_agent_name="{found[1]}-{number:02}"')
