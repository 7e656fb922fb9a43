"""Lines in order, however many."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from typing import IO, Any

import pytest

from otel_reliability.cli.sorting import Sorted


def test_many_lines_take_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are merged as they become many, and all of them are closed in the end."""
    make: Callable[..., IO[Any]] = vars(tempfile)["TemporaryFile"]
    made, most = list[IO[Any]](), 0

    def file(*arguments: Any, **options: Any) -> IO[Any]:
        nonlocal most
        one = make(*arguments, **options)
        made.append(one)
        most = max(most, sum(not other.closed for other in made))
        return one

    monkeypatch.setattr(tempfile, "TemporaryFile", file)
    numbers = random.Random(7).sample(range(500), 500)
    with Sorted(held=3, most_files=3) as lines:
        for number in numbers:
            lines.add((number // 2, f"{number}", f"line \ud800 {number}"))
        assert list(lines) == [f"line \ud800 {number}" for number in sorted(numbers, key=lambda at: (at // 2, str(at)))]
    assert len(made) > 100
    assert most <= 3 * 6
    assert all(one.closed for one in made)
