from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from tests.validation.pictures import Axis, circles, curve, picture
from tests.validation.prediction import Task, auroc, estimate, spearman, within

TASKS: list[Task] = [
    [(1.0, True), (0.0, False)],
    [(0.0, True), (1.0, False)],
    [(1.0, True), (1.0, True)],
]


def test_auroc_counts_pairs() -> None:
    """Failed runs have 1, 0, 1, 1, succeeded ones 0, 1: of eight pairs three and a half exceed, and
    three are ties.
    """
    assert auroc(TASKS) == pytest.approx((3 * 0.5 + 3 + 0.5) / 8)


def test_within_compares_attempts_at_one_task_only() -> None:
    assert within(TASKS) == 0.5
    assert math.isnan(within(TASKS[2:]))


def test_spearman_is_of_task_means() -> None:
    up = [[(float(n), n > at) for n in range(3)] for at in (2, 1, 0)]
    assert math.isnan(spearman(up))
    rising: list[Task] = [[(at + n / 9, n < at) for n in range(3)] for at in range(3)]
    assert spearman(rising) == pytest.approx(1)
    assert spearman([[(-n, bad) for n, bad in task] for task in rising]) == pytest.approx(-1)


def test_few_tasks_give_no_estimate() -> None:
    assert math.isnan(estimate(TASKS, auroc).value)
    same: list[Task] = [[(1.0, True), (1.0, False)] for _ in range(6)]
    assert estimate(same, auroc) == (0.5, 0.5, 0.5)
    assert not estimate(same, auroc).differs_from(0.5)


def test_pictures_are_well_formed() -> None:
    groups = {"one": [(0.0, 0.0), (1.0, 1.0)], "other": [(0.5, 0.2)]}
    across = Axis("x & y".replace("&", "and"), 0, 1)
    up = Axis("share", 0, 1)
    dots = ET.fromstring(picture(groups, across, up, circles))
    assert len(dots.findall(".//{*}circle")) == 3
    assert all(0 <= float(dot.get("cx", "-1")) <= 640 for dot in dots.findall(".//{*}circle"))
    assert len(ET.fromstring(picture(groups, across, up, curve)).findall(".//{*}polyline")) == 2
