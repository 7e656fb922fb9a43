"""Coverage of laws: what it is shown."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.watched import first_examples


class Watching:
    """Counts the calls of one function while it is looked at, as coverage does."""

    def __init__(self, name: str) -> None:
        self.calls, self._name = 0, name

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        self.calls += event == "call" and frame.f_code.co_name == self._name


def test_a_law_is_seen_for_its_first_examples_and_tried_for_all() -> None:
    """And whoever looked on before does so again."""
    tried: list[int] = []

    @given(st.integers())
    def law(number: int) -> None:
        tried.append(number)

    watching, before = Watching("law"), sys.gettrace()
    sys.settrace(watching)
    try:
        with first_examples(law, 3):
            handle: Any = law
            handle.hypothesis.inner_test(1)
            law()
        same = sys.gettrace() is watching
    finally:
        sys.settrace(before)

    assert same
    assert watching.calls == 3
    assert len(tried) > 10


def test_what_has_no_examples_is_seen_whole() -> None:
    """Nothing is put away."""

    def plain() -> None:
        """Does nothing."""

    watching, before = Watching("plain"), sys.gettrace()
    sys.settrace(watching)
    try:
        with first_examples(plain, 1):
            plain()
            plain()
    finally:
        sys.settrace(before)

    assert watching.calls == 2
