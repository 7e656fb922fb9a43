from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import count

import pytest

from otel_reliability.change.detector import Detector, Status
from otel_reliability.change.task_order import MIN_OBSERVATIONS, in_blocks
from otel_reliability.config import ChangeSettings
from otel_reliability.model.observation import Observation

TASKS = list(range(25))


@pytest.mark.parametrize("length", [2, 3, 8])
def test_attempts_in_a_row_are_blocks(length: int) -> None:
    assert in_blocks([task for task in TASKS for _ in range(length)])


def test_two_tasks_in_two_halves_are_blocks() -> None:
    """First one task, then the other: nobody can tell a change of the agent from one
    of the work.
    """
    assert in_blocks(["a"] * 50 + ["b"] * 50)


def test_a_random_order_is_none() -> None:
    dice = random.Random(1)
    assert not any(in_blocks(dice.choices(TASKS[: 2 + n % 24], k=200)) for n in range(1_000))


def test_rounds_are_none() -> None:
    assert not in_blocks(TASKS * 8)


def test_a_change_of_the_mix_is_none() -> None:
    """From six tasks to six others: that is a change to be told, not an order that forbids a
    verdict.
    """
    dice = random.Random(2)
    assert not any(
        in_blocks(dice.choices("abcdef", k=200) + dice.choices("ghijkl", k=200)) for _ in range(200)
    )


@pytest.mark.parametrize(
    "tasks", [[], ["a"] * 100, list(range(100)), ["a"] * 5 + ["b"] * (MIN_OBSERVATIONS - 6)]
)
def test_too_little_to_tell(tasks: list[object]) -> None:
    assert not in_blocks(tasks)


def test_only_the_last_500_units_count() -> None:
    detector = Detector(ChangeSettings())
    dice = random.Random(3)
    ordinals = count()

    def status_after(tasks: Iterable[int]) -> Status:
        for task in tasks:
            n = next(ordinals)
            detector.add(
                Observation(f"run-{n}", n, n, None, 3, None, None, None, None, task=str(task))
            )
        return detector.evidence().status

    assert status_after(task for task in TASKS for _ in range(8)) is Status.BLOCKS
    assert status_after(dice.choice(TASKS) for _ in range(500)) is Status.WATCHING
    data = detector.to_data()
    assert len(data["tasks"]) == 500
    assert Detector.from_data(data, ChangeSettings()).to_data() == data
