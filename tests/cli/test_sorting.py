from __future__ import annotations

import random

from otel_reliability.cli.sorting import Sorted


def test_lines_are_sorted_by_number_then_text() -> None:
    """However many there are, also such as no file could hold."""
    numbers = random.Random(7).sample(range(5_000), 5_000)
    with Sorted() as lines:
        for number in numbers:
            lines.add([(number // 2, f"{number}", f"line \ud800 {number}")])

        assert list(lines) == [f"line \ud800 {number}" for number in sorted(numbers, key=lambda at: (at // 2, str(at)))]
