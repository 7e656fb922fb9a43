"""Groups of alike requests tell which kinds of request go wrong."""

from __future__ import annotations

from tests.validation.grouping import failing_groups


def test_groups_whose_effects_differ_are_those_that_fail() -> None:
    assert failing_groups() >= 0.45
