"""The service is killed under load, at random moments and at aimed ones; what it acknowledged is
there, once.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.real.waiting import until
from tests.service.dying import MOMENTS, RARE
from tests.service.killing import Victim, check, clients_of


def killed(state: Path, kills: int, seed: int) -> list[bytes]:
    """Kill a service that often, every third time as soon as it may be at its recovery. Gives what
    was acknowledged.
    """
    when = random.Random(seed)
    victim = Victim(state)
    victim.start()
    try:
        with clients_of(victim) as clients:
            for number in range(kills):
                until(victim.listens, "the service to listen", pause=0.01)
                time.sleep(when.uniform(0.0, 0.05) if number % 3 == 2 else when.uniform(0.1, 0.5))
                victim.kill()
                victim.start()
            until(victim.listens, "the service to listen")
    finally:
        victim.kill()
    return [body for client in clients for body in client.acknowledged]


def died(state: Path, moments: list[tuple[str, int]]) -> list[bytes]:
    """Let a service die at these moments, one life after the other, each at the so-many-th time.
    Gives what was acknowledged.
    """
    victim = Victim(state)
    try:
        with clients_of(victim) as clients:
            for moment, times in moments:
                victim.start(moment, times)
                until(victim.died, f"the service to die {moment}", pause=0.01)
            victim.start()
            until(victim.listens, "the service to listen")
    finally:
        victim.kill()
    return [body for client in clients for body in client.acknowledged]


def times_of(moment: str) -> int:
    """How often a moment is reached before the service dies: the second save is the first with
    something before it.
    """
    if moment in RARE:
        return 1
    return 2 if "a save" in moment else 3


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    acknowledged = killed(tmp_path / "state", 6, seed=5)
    assert len(acknowledged) > 25
    check(tmp_path / "state", acknowledged, tmp_path / "twin")


def test_nothing_is_lost_whatever_it_was_at(tmp_path: Path) -> None:
    acknowledged = died(tmp_path / "state", [(moment, times_of(moment)) for moment in MOMENTS])
    assert len(acknowledged) > 20
    check(tmp_path / "state", acknowledged, tmp_path / "twin")


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_whatever_it_was_at_in_any_order(tmp_path: Path, seed: int) -> None:
    order = random.Random(seed)
    moments = [(moment, 1 if moment in RARE else order.choice([1, 2, 5])) for moment in MOMENTS] * 4
    order.shuffle(moments)
    acknowledged = died(tmp_path / "state", moments)
    check(tmp_path / "state", acknowledged, tmp_path / "twin")


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_in_fifty_kills(tmp_path: Path, seed: int) -> None:
    acknowledged = killed(tmp_path / "state", 50, seed)
    check(tmp_path / "state", acknowledged, tmp_path / "twin")
